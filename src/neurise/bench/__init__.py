"""How fast the library is: every figure as a ratio to a naive reference that is timed in the same run.

The naive reference is part of the package, because the command line times it wherever the package is installed.
"""
