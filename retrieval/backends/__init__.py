"""Search backends over the network: one file each, which only builds requests and parses replies."""
