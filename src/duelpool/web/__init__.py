"""The web server: judging page, dashboard, API and setup."""
