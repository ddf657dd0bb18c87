"""What strategies know of a pool: who met whom and who won, counted; shares of wins; what follows by transitivity."""
