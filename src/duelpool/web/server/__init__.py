"""The server process: the application, its guard, health, metrics, and the supervisor of several processes."""
