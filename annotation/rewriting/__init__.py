"""Rewriting answers against a persona by rules, and checking that the content stayed. Pure."""
