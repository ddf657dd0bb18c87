"""Whether what the flagship states of its answers is true, on problems of many kinds."""
