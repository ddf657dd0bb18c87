"""Access to the web pages: sessions, tokens and signed links, and the pages where people sign in."""
