"""Which pair to ask about next: one file a family, every strategy in one table."""
