"""The API of the arena: results of unsealed rounds for readers, ballots for raters.

Permissions are denied by default; who may comes from the policies, and every write goes through
the services that the pages use. Before unsealing no answer links a text or battle to a contestant.
"""
