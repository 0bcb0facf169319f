"""Runs laid out for people: beside the paper's tables, as plain tables, and as its figures."""
