"""Webhooks: a campaign's events, found once, signed, and sent until they arrive."""
