"""Releases of a campaign for others: without what could identify a person."""
