"""Commands that run and keep a server: serving, accounts, backups."""
