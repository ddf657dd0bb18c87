"""Other tools of the field: their recorded answers on our inputs, and the tools themselves where installed."""
