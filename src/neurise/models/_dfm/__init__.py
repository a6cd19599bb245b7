"""Parts of DFM."""
