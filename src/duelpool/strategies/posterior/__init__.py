"""What all judgments of a topic say about all items: several models of how people judge, weighed by the answers."""
