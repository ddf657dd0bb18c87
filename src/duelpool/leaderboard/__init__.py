"""The leaderboard of a campaign: scored once, or kept up to date while people judge."""

USUAL_MEASURE = "Compat(p=0.8)"
"""The measure of a campaign's leaderboard where none is named: it needs an order of items and no gains."""
