"""A page that shows what a model does."""
