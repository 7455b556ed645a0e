"""Memory that this process may take, for the executor: see cuzk/host/memory.py."""

from __future__ import annotations

from cuzk.host.memory import available_bytes, memory_limit_bytes

__all__ = ["available_bytes", "memory_limit_bytes"]
