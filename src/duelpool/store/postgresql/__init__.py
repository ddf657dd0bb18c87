"""What a PostgreSQL store has that SQLite has not: a clock of its own, and connections that break."""
