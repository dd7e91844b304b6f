"""The loop from an empty database to a second policy, played by simulated people."""
