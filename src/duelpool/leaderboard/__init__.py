"""The leaderboard of a campaign: scored once, or kept up to date while people judge."""
