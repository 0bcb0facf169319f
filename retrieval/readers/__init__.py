"""Page readers: from an address to readable text."""
