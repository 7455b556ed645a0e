"""What this process may take of its host: memory, within the limits of its control groups."""

from __future__ import annotations

from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
UNLIMITED_BYTES = 1 << 60
FILES = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))


def control_groups() -> list[tuple[int, int]]:
    """(limit, usage) in bytes of every control group around this process that limits its memory."""
    own = Path("/proc/self/cgroup")
    groups = [line.rpartition(":")[2].strip("/") for line in own.read_text().splitlines()] if own.exists() else []
    places = [(ROOT / group / FILES[0][0], ROOT / group / FILES[0][1]) for group in groups if group]
    places += [(ROOT / limit, ROOT / usage) for limit, usage in FILES]
    found = []
    for limit_file, usage_file in places:
        try:
            limit, usage = limit_file.read_text().strip(), usage_file.read_text().strip()
        except OSError:
            continue
        if limit.isdigit() and usage.isdigit() and int(limit) < UNLIMITED_BYTES:
            found.append((int(limit), int(usage)))
    return found


def memory_limit_bytes() -> int | None:
    """The tightest limit; None without one."""
    return min((limit for limit, _ in control_groups()), default=None)


def available_bytes() -> int:
    """Memory that this process may still take: the system's, or its control groups' if that is less."""
    import psutil

    free = int(psutil.virtual_memory().available)
    return min([free, *(max(0, limit - usage) for limit, usage in control_groups())])
