"""Forms of annotation, by noun."""
