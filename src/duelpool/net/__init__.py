"""Addresses that users give us, and the one HTTP client that calls them."""
