"""Files of rows: one format per file."""
