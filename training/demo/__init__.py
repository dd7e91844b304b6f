"""A small world of training data, frozen as an administrator would freeze it."""
