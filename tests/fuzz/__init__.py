"""Coverage-guided fuzzing of every reader: `python -m tests.fuzz` (or `make fuzz`)."""
