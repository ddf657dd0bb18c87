"""The parts of `benchmarks/scale.py`; each has `measure(size)`, which returns rows."""
