"""What `search-o1 doctor` looks at: one module a part of the installation."""
