"""Findings of `cuzk inspect` for people."""

from __future__ import annotations

import json
from typing import Any


def as_text(found: dict[str, Any]) -> str:
    """The findings for people: one line a fact, sizes in GiB where large."""
    lines = [f"{found['file']}: {found['kind']}, {size_text(found['size_bytes'])}, curve {found['curve']}"]
    for name, value in found.items():
        if name in ("file", "kind", "size_bytes", "curve") or value is None:
            continue
        if name == "residency":
            for place, cost in value.items():
                text = "not possible (the file's points must be converted)" if cost is None else _costs(cost)
                lines.append(f"  key in {place}: {text}")
        elif name == "proof" and isinstance(value, dict):
            for quotient, cost in value.items():
                lines.append(f"  a proof, {quotient}: {cost['transforms']} transforms, {_costs(cost)}")
        elif name.endswith("_bytes"):
            lines.append(f"  {name[:-6]}: {size_text(value)}")
        elif name == "scenario":
            lines.append(f"  under {value['scenario']}: {value['line']}")
            lines += [f"    the scenario's circuit has other counts: {value['differs']}"] if value["differs"] else []
        elif name == "unsafe_key":
            lines += [f"  UNSAFE: the key {reason}" for reason in value]
        elif name == "development":
            lines += ["  DEVELOPMENT KEY"] if value else []
        else:
            lines.append(f"  {name}: {value if isinstance(value, str) else json.dumps(value)}")
    return "\n".join(lines)


def _costs(cost: dict[str, Any]) -> str:
    named = [f"{name[:-6].replace('_', ' ')} {size_text(value)}" for name, value in cost.items() if name.endswith("_bytes")]
    return ", ".join(named)


def size_text(size: int) -> str:
    """Bytes for people: GiB, MiB or KiB with one decimal."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} B"
