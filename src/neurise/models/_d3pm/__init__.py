"""Parts of D3PM."""
