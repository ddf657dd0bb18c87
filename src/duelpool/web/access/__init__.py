"""The door: who a request comes from, by session, token or key, and the pages where people sign in."""
