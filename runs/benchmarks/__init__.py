"""The benchmarks by name, and any question file by `--data`."""
