"""A campaign for others: files, bundles with their codebook, and releases without what could identify a person."""
