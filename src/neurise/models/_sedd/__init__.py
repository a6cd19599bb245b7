"""Parts of SEDD."""
