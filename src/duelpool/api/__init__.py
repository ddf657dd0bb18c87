"""What `import duelpool as dp` offers: each name is imported when it is first used."""
