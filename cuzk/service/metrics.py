"""Counters of one service in Prometheus' text format, under the daemon's names where it has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from cuzk.service import journal as states
from cuzk.service.job import Job, Phase
from cuzk.service.journal import Ended
from cuzk.service.kinds import Kinds

if TYPE_CHECKING:
    from cuzk.service.service import Service

BUCKETS_S = (0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600)


class Histogram:
    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS_S) + 1)
        self.total_s = 0.0

    def add(self, seconds: float) -> None:
        self.counts[next((i for i, most in enumerate(BUCKETS_S) if seconds <= most), len(BUCKETS_S))] += 1
        self.total_s += seconds

    def lines(self, name: str, label: str) -> list[str]:
        out, below = [], 0
        for most, count in zip((*map(str, BUCKETS_S), "+Inf"), self.counts, strict=True):
            below += count
            out.append(f'{name}_bucket{{{label},le="{most}"}} {below}')
        return [*out, f"{name}_sum{{{label}}} {self.total_s:.3f}", f"{name}_count{{{label}}} {below}"]


class Metrics:
    def __init__(self, kinds: Kinds) -> None:
        self.completed, self.failed, self.cancelled = (Counter[str]() for _ in range(3))
        for kind in kinds:
            for counter in (self.completed, self.failed, self.cancelled):
                counter[kind.metric] = 0
        self.durations: dict[str, Histogram] = {}
        self.partitions = self.proved_again = self.joined = 0
        self.refused: Counter[str] = Counter({reason: 0 for reason in ("invalid", "conflict", "busy", "disk", "draining")})

    def count(self, job: Job, end: Ended) -> None:
        """A job has ended."""
        kind = job.kind.metric
        counter = {states.COMPLETED: self.completed, states.CANCELLED: self.cancelled}.get(end.state, self.failed)
        counter[kind] += 1
        if end.state == states.COMPLETED:
            self.durations.setdefault(kind, Histogram()).add(end.total_ms / 1000)

    def text(self, service: Service) -> str:
        jobs = list(service.jobs.values())
        waiting = sum(job.phase in (Phase.QUEUED, Phase.PREPARING, Phase.READY) for job in jobs)
        running = sum(job.phase is Phase.RUNNING for job in jobs)
        keys = service.prover.loaded()
        rows: list[tuple[str, str, str, Iterable[str]]] = [
            ("cuzk_proofs_completed_total", "counter", "Proofs that came out.", _one(sum(self.completed.values()))),
            ("cuzk_proofs_failed_total", "counter", "Jobs that ended with an error.", _one(sum(self.failed.values()))),
            ("cuzk_proofs_cancelled_total", "counter", "Jobs that were cancelled.", _one(sum(self.cancelled.values()))),
            ("cuzk_proofs_completed", "counter", "Proofs that came out, by kind.", _by_kind(self.completed)),
            ("cuzk_proofs_failed", "counter", "Jobs that ended with an error, by kind.", _by_kind(self.failed)),
            ("cuzk_partitions_proved_total", "counter", "Partitions that were proved.", _one(self.partitions)),
            ("cuzk_partitions_proved_again_total", "counter", "Partitions that did not verify or were lost with a device.",
             _one(self.proved_again)),
            ("cuzk_requests_joined_total", "counter", "Requests that joined a job that was open already.", _one(self.joined)),
            ("cuzk_requests_refused_total", "counter", "Requests that were not taken on.",
             [f'{{reason="{reason}"}} {n}' for reason, n in sorted(self.refused.items())]),
            ("cuzk_uptime_seconds", "gauge", "Since the service began.", _one(int(service.live.now()))),
            ("cuzk_queue_depth", "gauge", "Jobs that wait.", _one(waiting)),
            ("cuzk_running_jobs", "gauge", "Jobs that are proved now.", _one(running)),
            ("cuzk_gpu_workers", "gauge", "Devices that prove.", _one(len(service.prover.slots()))),
            ("cuzk_degraded", "gauge", "1 when the service as a whole has a fault.", _one(int(bool(service.degraded)))),
            ("cuzk_draining", "gauge", "1 when nothing new is taken.", _one(int(service.draining))),
            ("cuzk_key_bytes", "gauge", "Keys that are loaded.",
             [f'{{circuit_id="{_escaped(str(key["circuit_id"]))}"}} {key["bytes"]}' for key in keys]),
        ]  # fmt: skip
        lines = []
        for name, kind, text, values in rows:
            lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}", *(f"{name}{value}" for value in values)]
        name = "cuzk_proof_duration_seconds"
        lines += [f"# HELP {name} From submission to the verified proof.", f"# TYPE {name} histogram"]
        for kind, histogram in sorted(self.durations.items()):
            lines += histogram.lines(name, f'proof_kind="{kind}"')
        return "\n".join(lines) + "\n"


def _one(value: int) -> list[str]:
    return [f" {value}"]


def _by_kind(counter: Counter[str]) -> list[str]:
    return [f'{{proof_kind="{kind}"}} {n}' for kind, n in sorted(counter.items())]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
