"""The arithmetic of the gate: rules, the paired comparison, the verdict, edge cases. Pure."""
