"""Ways to choose the parameters of the next trial, one a file: file name = name on the command line."""
