"""The manager's side: a dashboard for people and an API for programs, over the same dashboard."""
