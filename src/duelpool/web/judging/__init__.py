"""The judging page: where a visitor is, what they see, what they answer."""
