"""From the log to live state: replay, the topics in memory, items that join late."""
