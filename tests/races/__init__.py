"""The host library under ThreadSanitizer: `python -m tests.races` (or `make races`)."""
