"""The pages of the arena, split by noun."""
