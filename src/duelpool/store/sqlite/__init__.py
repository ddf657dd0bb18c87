"""What a SQLite store has that PostgreSQL has not: copies, damaged pages, a file that may be lost."""
