"""Forms of training. They translate; the rules stand in the services."""
