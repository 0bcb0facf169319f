"""Improving the prompts with DSPy's optimizers: `search-o1 optimize`."""
