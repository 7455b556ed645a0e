"""A daemon's log as the simulator would have written it: for tests that go from a run to its log and back."""

from __future__ import annotations

import statistics
from pathlib import Path

from cuzk.model.scenario import Scenario
from cuzk.sim import simulate
from cuzk.trace.spans import spans

GPU_STEPS = ("ntt_h", "msm_h", "batch_add", "tail_msm", "gpu_overhead")


def write_log(path: Path, scenario: Scenario, *, colours: bool = False) -> float:
    """The log of a simulated run; returns the run's seconds a proof."""
    result = simulate(scenario, trace=True, unlimited_ram=True)
    events = result.events or []
    lines: list[tuple[float, str]] = []
    first: dict[tuple, float] = {}
    last: dict[tuple, float] = {}
    by_set: dict[tuple, dict[str, float]] = {}
    for span in spans(events):
        key = (span.proof, span.partition)
        if span.name in ("witness", "matvec"):
            first[key] = min(first.get(key, span.start), span.start)
            last[key] = max(last.get(key, span.end), span.end)
        if span.name in ("prep_msm", "b_g2_msm"):
            lines.append((span.end, f"CUZK_TIMING: {span.name}_ms={span.seconds * 1e3:.0f}"))
        if span.name == "pin_pages":
            lines.append(
                (span.start, f"TIMELINE,{span.start * 1e3:.0f},GPU_START,job [{span.proof}],worker=0,partition={span.partition}")
            )
        if span.name in GPU_STEPS:
            times = by_set.setdefault(key, {})
            times[span.name] = times.get(span.name, 0.0) + span.seconds
    for (proof, partition), start in first.items():
        end = last[(proof, partition)]
        lines.append((start, f"TIMELINE,{start * 1e3:.0f},SYNTH_START,job [{proof}],partition={partition}"))
        took = (end - start) * 1e3
        lines.append((end, f"TIMELINE,{end * 1e3:.0f},SYNTH_END,job [{proof}],partition={partition},synth_ms={took:.0f}"))
    for event in events:
        if event.kind == "complete" and event.partition != -1:
            where = f"job [{event.proof}],worker=0,partition={event.partition}"
            lines.append((event.t, f"TIMELINE,{event.t * 1e3:.0f},GPU_END,{where},gpu_ms=1"))
            took = by_set[(event.proof, event.partition)]
            ms = {name: seconds * 1e3 for name, seconds in took.items()}
            kernels = ms["ntt_h"] + ms["msm_h"]
            held = sum(ms.values())
            lines.append((event.t, f"CUZK_TIMING: gpu_tid=0 ntt_msm_h_ms={kernels:.0f}"))
            lines.append((event.t, "CUZK_TIMING: gpu_tid=0 barrier_wait_ms=0"))
            lines.append((event.t, f"CUZK_TIMING: gpu_tid=0 batch_add_ms={ms['batch_add']:.0f}"))
            lines.append((event.t, f"CUZK_TIMING: gpu_tid=0 tail_msm_ms={ms['tail_msm']:.0f} gpu_total_ms={held:.0f}"))
            lines.append((event.t, f"CUZK_TIMING: mutex_held_ms={held:.0f} total_start_fn_ms={held:.0f}"))
    lines.sort(key=lambda line: line[0])
    before, after = ("\x1b[32m", "\x1b[0m") if colours else ("", "")
    path.write_text("".join(f"{before}{text}{after}\n" for _, text in lines), encoding="utf-8")
    assert statistics.median(last[key] - first[key] for key in first) > 0
    assert result.s_per_proof is not None
    return result.s_per_proof
