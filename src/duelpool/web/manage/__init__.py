"""The manager's pages: the dashboard, and the API with the same functions."""
