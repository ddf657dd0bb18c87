"""Scores from a sample: estimators, their moments and the intervals around them."""
