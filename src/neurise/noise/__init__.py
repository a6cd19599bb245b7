"""Known forward processes: nothing to learn."""
