"""What the cache is made of: keys, the SQLite file, its upkeep, failures that were recorded, replay."""
