"""People from a panel in a campaign: arrivals, submissions, what the panel reports, payments, settlement, erasure."""
