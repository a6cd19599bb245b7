"""Parts of Pairwise."""
