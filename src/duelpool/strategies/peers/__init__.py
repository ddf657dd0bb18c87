"""Algorithms of others, to compare with: bandits, spectral and interval methods, and what they share."""
