"""Files of rows: one format a file."""
