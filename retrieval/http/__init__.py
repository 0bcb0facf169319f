"""The one HTTP client of all network backends and readers, and the guard of the addresses it may fetch."""
