"""Dates and times as both languages write them: short ones by ISO 8601, so that nobody misreads."""
