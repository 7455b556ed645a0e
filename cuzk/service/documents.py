"""Jobs, queue and status as JSON. The status has the daemon's keys, and more."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from cuzk.service import journal as states
from cuzk.service.job import Job, Phase
from cuzk.service.journal import Ended, Record

if TYPE_CHECKING:
    from cuzk.service.service import Service


def _ended(end: Ended) -> dict[str, Any]:
    return {
        "state": end.state, "error": end.error, "proof_hex": end.proof.hex(), "ended_s": end.ended_s,
        "timings_ms": {"queue_wait": end.queue_ms, "srs_load": end.load_ms, "synthesis_sum": end.synth_ms,
                       "gpu_sum": end.gpu_ms, "total": end.total_ms},
    }  # fmt: skip


def job_document(service: Service, job: Job) -> dict[str, Any]:
    """Times are seconds since the epoch, durations milliseconds; sums are over partitions that overlap."""
    out: dict[str, Any] = {
        "job_id": job.id, "proof_kind": job.kind.name, "state": job.phase.value, "priority": job.priority.name.lower(),
        "circuit_id": job.circuit_id or None, "submitted_s": job.submitted_s, "deadline_s": job.deadline_at_s,
        "partitions": job.partitions or None, "partitions_done": len(job.made), "proved_again": job.retries,
    }  # fmt: skip
    if job.ended is not None:
        out |= _ended(job.ended)
        if job.ended.state == states.COMPLETED:
            out["partitions_done"] = job.partitions
    else:
        out |= {"queue_position": None if job.phase is Phase.RUNNING else service.position(job), "waits_for": job.waits_for,
                "expected": job.forecast}  # fmt: skip
        if job.why_cancelled is not None:
            out["state"] = "cancelling"
    if job.predicted_at_start is not None:
        out["predicted_at_start"] = job.predicted_at_start
    return out


def record_document(service: Service, record: Record) -> dict[str, Any]:
    request = record.request
    out = {"job_id": request.request_id, "proof_kind": service.kinds.of(request.kind).name, "priority":
           request.priority.name.lower(), "submitted_s": record.submitted_s, "deadline_s": record.deadline_at_s}  # fmt: skip
    return out | (_ended(record.ended) if record.ended is not None else {"state": "open"})


def queue_document(service: Service) -> dict[str, Any]:
    jobs = sorted(service.jobs.values(), key=lambda job: (job.phase is not Phase.RUNNING, job.rank))
    return {"draining": service.draining, "limit": service.limits.jobs, "jobs": [job_document(service, job) for job in jobs]}


def status_document(service: Service) -> dict[str, Any]:
    import psutil

    now = time.monotonic()
    jobs = list(service.jobs.values())
    running = [job for job in jobs if job.phase is Phase.RUNNING]
    memory = psutil.virtual_memory()
    metrics = service.metrics
    pipelines = []
    for job in [*running, *(job for job in service.recent if job.ended and time.time() - job.ended.ended_s < 30)]:
        found = service.live.states(job.id)
        rows = []
        for n in range(job.partitions):
            synth_ms, gpu_ms = job.spent_ms.get(n, (None, None))
            state = "done" if n in job.made else found.get(n, "pending")
            rows.append({"index": n, "state": state, "synth_ms": synth_ms, "gpu_ms": gpu_ms})
        pipelines.append({
            "job_id": job.id, "proof_kind": job.kind.name, "started_secs_ago": round(now - (job.began or job.arrived), 3),
            "total_partitions": job.partitions, "partitions_done": len(job.made), "partitions": rows,
            "state": job.ended.state if job.ended else "running", "expected": job.forecast,
        })  # fmt: skip
    slots = service.prover.slots()
    workers = [
        {"worker_id": n, "gpu_ordinal": slot.ordinal, "name": slot.name, "state": "proving" if running else "idle",
         "current_job": running[n % len(running)].id if running else None, "current_partition": None, "busy_secs": None}
        for n, slot in enumerate(slots)
    ]  # fmt: skip
    calibration = service.forecaster.calibration
    return {
        "uptime_secs": round(service.live.now(), 3),
        "state": "draining" if service.draining else "degraded" if service.degraded else "ok", "why": service.degraded,
        "memory": {"total_bytes": memory.total, "used_bytes": memory.total - memory.available,
                   "available_bytes": memory.available},
        "synthesis": {"max_concurrent": service.prover.width, "active": sum(
            state == "synthesizing" for job in running for state in service.live.states(job.id).values())},
        "pipelines": pipelines, "gpu_workers": workers,
        "allocations": {"srs": [{"circuit_id": key["circuit_id"], "bytes": key["bytes"], "last_used_secs_ago": key["idle_s"],
                                 "evictable": not key["users"]} for key in service.prover.loaded()], "pce": []},
        "counters": {
            "total_completed": sum(metrics.completed.values()), "total_failed": sum(metrics.failed.values()),
            "completed_by_kind": dict(metrics.completed), "failed_by_kind": dict(metrics.failed),
            "queue_depth": len(jobs) - len(running),
        },
        "buffers": {"synth_in_flight": 0, "provers_in_flight": len(running), "aux_in_flight": 0, "shells_in_flight": 0,
                    "pending_handles": 0},
        "calibration": calibration.name if calibration else None,
    }  # fmt: skip
