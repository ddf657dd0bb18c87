"""Frozen plans of what to judge: written, read, judged in rounds, and turned into scores."""
