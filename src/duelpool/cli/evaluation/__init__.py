"""Commands that need no campaign: evaluation, budgets, simulations, the demo."""
