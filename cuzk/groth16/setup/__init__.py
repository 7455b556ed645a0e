"""Making keys: from secrets of this machine (for development), and from a powers-of-tau file (phase 2)."""
