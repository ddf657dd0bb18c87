"""The judging page: people judge side by side in a browser, and nothing that they answer is lost."""
