"""What all judgments of a topic say about all of its items: several models of how people judge, weighed by the answers."""
