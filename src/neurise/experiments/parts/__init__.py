"""What experiments are made of: figures, summaries, commands, units of work and grids of samples."""
