"""Files of a frozen dataset."""
