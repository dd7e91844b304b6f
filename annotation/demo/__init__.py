"""The demo's annotation project."""
