"""Every write of the arena, split by noun."""
