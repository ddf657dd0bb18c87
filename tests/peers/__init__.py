"""The field's other tools: their recorded answers on inputs of our own, and the tools themselves where installed."""
