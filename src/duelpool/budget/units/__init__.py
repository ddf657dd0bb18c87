"""What could be judged: units with their weights, what is believed of their utilities, and what is to be estimated."""
