"""Settings of a service: the command line over cuzk.toml over defaults.

cuzk.toml is the daemon's file: its keys are taken where they mean something here, and named where they do not. A wrong value of
a size or duration is what the daemon makes of it, with a warning; a wrong type is an error.
"""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cuzk.errors import InputError

DEFAULT_FILE = "/data/zk/cuzk.toml"
DEFAULT_PARAMS = "/var/tmp/filecoin-proof-parameters"
PARAMS_VARIABLE = "FIL_PROOFS_PARAMETER_CACHE"
GIB, MIB = 1 << 30, 1 << 20


@dataclass(frozen=True)
class Settings:
    listen: str = "unix:///run/curio/cuzk.sock"
    http: str = ""
    """Empty: no HTTP."""
    params: str = ""
    params_from: str = ""
    """The place that has named the folder."""
    state: str = ""
    """Empty: `default_state`."""
    ram_bytes: int | None = None
    """Budget of the pipeline and the keys; None: what is free, less the margin."""
    margin_bytes: int = 5 * GIB
    key_bytes: int | None = None
    min_idle_s: float = 300.0
    devices: tuple[int, ...] = ()
    gw: int | None = None
    pw: int | None = None
    threads: int | None = None
    log_level: str = "info"
    notes: tuple[str, ...] = field(default=())
    """Keys that have no effect, or another one than they say; one line each."""


def default_state(listen: str, params: str) -> str:
    """A folder for each address and folder of keys: results are those of its keys, and two services do not meet."""
    base = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    name = re.sub(r"[^A-Za-z0-9.]+", "-", listen).strip("-")[-80:]
    keys = hashlib.sha256(os.fsencode(os.path.realpath(params))).hexdigest()[:8]
    return os.path.join(base, "cuzk", "serve", f"{name}-{keys}")


def read_settings(path: str | None, environ: dict[str, str] | None = None) -> Settings:
    """The settings of cuzk.toml, or defaults where there is none. Raises InputError: a file that was named and is not there, no
    TOML, a value of a wrong type."""
    environ = dict(os.environ) if environ is None else environ
    found = Settings()
    file = path or (DEFAULT_FILE if os.path.isfile(DEFAULT_FILE) else None)
    if file is not None:
        found = _Toml(file).settings(found)
    if not found.params:
        variable = environ.get(PARAMS_VARIABLE, "")
        found = replace(found, params=variable or DEFAULT_PARAMS, params_from=PARAMS_VARIABLE if variable else "the default")
    return found


def parse_size(text: str, where: str, notes: list[str]) -> int:
    """Bytes, as the daemon reads them: whole numbers with GiB, MiB, GB, MB or nothing; what it cannot read is 50 GiB, or 0 with
    a suffix of MiB or MB."""
    found = re.fullmatch(r"\s*(\d+)\s*(GiB|MiB|GB|MB|)\s*", text)
    if found:
        return int(found[1]) * {"GiB": GIB, "MiB": MIB, "GB": 10**9, "MB": 10**6, "": 1}[found[2]]
    value = 0 if text.strip().endswith(("MiB", "MB")) else 50 * GIB
    notes.append(f"{where}: {text!r} is no size that the daemon reads; it takes {value // GIB} GiB then, and so does this")
    return value


def parse_duration(text: str, where: str, notes: list[str]) -> float:
    """Seconds: `5m`, `300s`, `300`; what the daemon cannot read is five minutes."""
    found = re.fullmatch(r"\s*(\d+)\s*(m|s|)\s*", text)
    if found:
        return float(found[1]) * (60 if found[2] == "m" else 1)
    notes.append(f"{where}: {text!r} is no duration that the daemon reads; it takes five minutes then, and so does this")
    return 300.0


_STRING, _WHOLE, _FLAG, _LIST = "a string", "a whole number", "true or false", "a list"
_KEYS: dict[str, str] = {
    "daemon.listen": _STRING, "daemon.status_listen": _STRING, "memory.total_budget": _STRING, "memory.safety_margin": _STRING,
    "memory.eviction_min_idle": _STRING, "memory.pinned_budget": _STRING, "memory.working_memory_budget": _STRING,
    "gpus.devices": _LIST, "gpus.gpu_threads": _WHOLE, "gpus.gpu_workers_per_device": _WHOLE, "scheduler.max_batch_size": _WHOLE,
    "scheduler.max_batch_wait_ms": _WHOLE, "scheduler.sort_by_type": _FLAG, "synthesis.threads": _WHOLE,
    "synthesis.partition_workers": _WHOLE, "pipeline.enabled": _FLAG, "pipeline.synthesis_lookahead": _WHOLE,
    "pipeline.synthesis_concurrency": _WHOLE, "pipeline.max_parallel_synthesis": _WHOLE, "pipeline.slot_size": _WHOLE,
    "pipeline.max_gpu_queue_depth": _WHOLE, "srs.param_cache": _STRING, "srs.preload": _LIST, "logging.level": _STRING,
    "logging.format": _STRING,
}  # fmt: skip
_IGNORED = {
    "memory.pinned_budget": "deprecated in the daemon, which ignores it, too",
    "memory.working_memory_budget": "deprecated in the daemon, which ignores it, too",
    "synthesis.partition_workers": "deprecated in the daemon, which ignores it, too; max_parallel_synthesis is what counts",
    "srs.preload": "deprecated in the daemon, which ignores it, too; PreloadSRS loads a key ahead",
    "scheduler.sort_by_type": "the daemon never reads it; jobs go by priority, then by their coming",
    "scheduler.max_batch_size": "jobs are not batched: partitions of one proof fill the devices",
    "scheduler.max_batch_wait_ms": "jobs are not batched",
    "gpus.gpu_threads": "steps share the host's cores; synthesis.threads is the number for a step",
    "pipeline.enabled": "there is no monolithic mode",
    "pipeline.synthesis_lookahead": "the daemon only prints it",
    "pipeline.synthesis_concurrency": "inputs are read ahead in any case, urgent ones first",
    "pipeline.slot_size": "the daemon only prints it",
    "pipeline.max_gpu_queue_depth": "the channel to the GPU is bounded by the pipeline itself",
    "logging.format": "the daemon never reads it",
}


class _Toml:
    def __init__(self, path: str) -> None:
        self.path = path
        try:
            raw = Path(path).read_bytes()
            if len(raw) > 1 << 20:
                raise InputError(f"{path}: {len(raw):,} bytes are more than any settings need")
            self.data = tomllib.loads(raw.decode())
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: no TOML: {error}") from error
        self.text = raw.decode()
        self.notes: list[str] = []
        self.values: dict[str, Any] = {}

    def settings(self, base: Settings) -> Settings:
        for section, content in self.data.items():
            if not isinstance(content, dict):
                self.notes.append(f"{self._at(section)}: {section}: not a section that is known; ignored")
                continue
            for key, value in content.items():
                self._take(f"{section}.{key}", value)
        found, notes = self.values, self.notes
        budget = found.get("memory.total_budget", "auto")
        out = replace(
            base, listen=found.get("daemon.listen", base.listen), http=found.get("daemon.status_listen", base.http),
            ram_bytes=None if budget == "auto" else parse_size(budget, self._at("total_budget"), notes),
            margin_bytes=self._size("memory.safety_margin", base.margin_bytes),
            min_idle_s=self._duration("memory.eviction_min_idle", base.min_idle_s),
            devices=tuple(found.get("gpus.devices", ())), gw=found.get("gpus.gpu_workers_per_device"),
            pw=found.get("pipeline.max_parallel_synthesis") or None, threads=found.get("synthesis.threads") or None,
            log_level=found.get("logging.level", base.log_level),
        )  # fmt: skip
        if "srs.param_cache" in found:
            out = replace(out, params=found["srs.param_cache"], params_from=f"srs.param_cache of {self.path}")
        return replace(out, notes=(*base.notes, *notes))

    def _take(self, name: str, value: Any) -> None:
        wanted = _KEYS.get(name)
        where = self._at(name.rpartition(".")[2])
        if wanted is None:
            self.notes.append(f"{where}: {name}: not a key that is known; ignored")
            return
        if not _is(value, wanted):
            raise InputError(f"{where}: {name}: must be {wanted}, not {value!r}")
        if name in _IGNORED:
            self.notes.append(f"{where}: {name}: no effect here: {_IGNORED[name]}")
            return
        if wanted is _WHOLE and value < 0:
            raise InputError(f"{where}: {name}: must not be negative")
        if name == "gpus.devices" and not all(_is(one, _WHOLE) and 0 <= one < 64 for one in value):
            raise InputError(f"{where}: {name}: must be a list of ordinals")
        self.values[name] = value

    def _size(self, name: str, otherwise: int) -> int:
        return parse_size(self.values[name], self._at(name.rpartition(".")[2]), self.notes) if name in self.values else otherwise

    def _duration(self, name: str, otherwise: float) -> float:
        return (
            parse_duration(self.values[name], self._at(name.rpartition(".")[2]), self.notes) if name in self.values else otherwise
        )

    def _at(self, key: str) -> str:
        """file:line of the first line that begins with this key or section."""
        for number, line in enumerate(self.text.split("\n"), 1):
            if re.match(rf"\s*(\[\s*)?[\"']?{re.escape(key)}[\"']?\s*[=\].]", line):
                return f"{self.path}:{number}"
        return self.path


def _is(value: Any, wanted: str) -> bool:
    kinds = {_STRING: str, _WHOLE: int, _FLAG: bool, _LIST: list}
    return isinstance(value, kinds[wanted]) and (wanted is _FLAG or not isinstance(value, bool))
