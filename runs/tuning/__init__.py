"""Searching for the best options of a chain with Optuna: `search-o1 tune`."""
