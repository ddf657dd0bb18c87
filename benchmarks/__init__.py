"""Benchmarks against the tools of the field; each prints ratios."""
