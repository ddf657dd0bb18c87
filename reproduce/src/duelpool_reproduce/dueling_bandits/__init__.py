"""Human Preferences as Dueling Bandits (SIGIR 2022): its simulations, its crowd campaign, best-item evaluation."""
