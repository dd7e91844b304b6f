"""Every read of the arena, split by noun."""
