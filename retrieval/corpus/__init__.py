"""Your own documents: reading them, the index on disk, searching it."""
