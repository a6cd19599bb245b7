"""Tasks of ``benchmarks/quality.py``: one file each, with a function ``run`` that yields a row for every fit."""
