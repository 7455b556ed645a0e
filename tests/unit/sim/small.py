"""Small scenarios with round numbers, so that a test can work out by hand what must come out."""

from __future__ import annotations

from typing import Any

from cuzk.model.scenario import Scenario

GIB = 1 << 30


def scenario(pipeline: dict[str, Any] | str, costs: dict[str, dict[str, Any]], *, ram: str = "64GiB", vram: str = "16GiB",
             gpus: int = 1, cores: int = 8, partitions: int = 2, proofs: int = 1, policy: dict[str, Any] | None = None,
             arrivals: Any = "closed", contention: dict[str, Any] | None = None, latency: dict[str, Any] | None = None,
             seed: int = 0, mix: list[dict[str, Any]] | None = None) -> Scenario:  # fmt: skip
    """`costs`: step -> fields of its law."""
    circuit = circuit_of("small", partitions)
    workload: dict[str, Any] = {"arrivals": arrivals} | ({} if isinstance(arrivals, list) else {"proofs": proofs})
    if mix:
        workload["circuits"] = mix
    return Scenario.model_validate({
        "name": "small",
        "machine": {
            "name": "box", "ram": ram, "cores": cores,
            "gpus": [{"name": "card", "vram": vram, "sms": 10, "pcie_h2d": "1GiB/s", "pcie_d2h": "1GiB/s", "count": gpus}],
        },
        "circuit": circuit,
        "pipeline": pipeline,
        "policy": policy or {},
        "workload": workload,
        "seed": seed,
        "calibration": {
            "name": "round numbers", "software": "none", "machine": "box",
            "costs": {name: {"provenance": "assumed", "cores": 1, **law} for name, law in costs.items()},
            "contention": {"provenance": "assumed", **(contention or {})},
            "latency": {"provenance": "assumed", **(latency or {})},
        },
    })  # fmt: skip


def circuit_of(name: str, partitions: int, constraints: int = 1000) -> dict[str, Any]:
    return {
        "name": name, "constraints": constraints, "aux": constraints, "inputs": 1, "density_a_aux": constraints,
        "density_b_aux": constraints, "partitions": partitions, "srs": "0B", "pce": "0B",
    }  # fmt: skip


def two_workers(task: list[dict[str, Any]], gpu: list[dict[str, Any]], buffers: dict[str, Any] | None = None,
                capacity: int = 1, workers: int = 1, permits: int = 10, **more: Any) -> dict[str, Any]:  # fmt: skip
    """Tasks that synthesise and a pool of GPU workers behind a channel `ready`."""
    pipeline: dict[str, Any] = {
        "name": "two workers",
        "buffers": buffers or {},
        "locks": {"gpu_mutex": {"per": "gpu"}},
        "permits": {"slots": {"count": permits}},
        "channels": {"ready": {"capacity": capacity}},
        "workers": {
            "task": {"start": "partition", "steps": task},
            "gpu": {"start": "pool", "per": "gpu", "count": workers, "steps": gpu},
        },
    }
    pipeline["workers"] |= more.pop("workers_too", {})
    return pipeline | more
