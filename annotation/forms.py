"""Forms of annotation."""
