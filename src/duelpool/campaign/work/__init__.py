"""People at work: participants, assignments, exclusion, the ledger."""
