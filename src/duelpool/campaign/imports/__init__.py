"""Judgments from files into the log of a campaign."""
