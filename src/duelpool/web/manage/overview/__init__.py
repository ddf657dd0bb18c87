"""The Overview of a campaign: what the dashboard opens with."""
