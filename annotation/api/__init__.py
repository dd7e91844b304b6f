"""The API of annotation: work for annotators, projects and data for managers.

Who may comes from the policies, and every write goes through the services that the pages use. What
an annotator gets is a blind object: no producer, no other person's label, nothing of gold (V8).
"""
