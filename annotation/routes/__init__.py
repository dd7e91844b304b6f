"""Addresses of annotation, by part."""
