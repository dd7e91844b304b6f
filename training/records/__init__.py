"""Imported records: pure parsers from a byte stream to rows and refusals."""
