"""A policy as the daemon's configuration: what it has keys for as keys, the rest as comments that say what it will do instead."""

from __future__ import annotations

from cuzk.daemon.scenario import LEAST_SYNTHESIS, MAX_PENDING, PARTITION_BYTES
from cuzk.model.circuit import Circuit
from cuzk.model.machine import Machine
from cuzk.model.policy import Policy
from cuzk.model.units import GIB


def toml_text(policy: Policy, machine: Machine, circuit: Circuit, comment: str = "") -> str:
    """`cuzk.toml` for a resolved policy (no option open) on a machine.

    The budget is cut so that no more than `pw` partitions are reserved beside key and matrices: the daemon gives a permit back
    when synthesis ends, and only its budget bounds the sets that wait for a GPU.
    """
    workers = max(LEAST_SYNTHESIS, policy.pw or LEAST_SYNTHESIS)
    resident = circuit.srs_bytes + circuit.pce_bytes
    bound = max(workers, policy.pw or 0) + (policy.gw or 1) * len(machine.gpus)
    budget = min(machine.usable_ram, resident + bound * PARTITION_BYTES)
    whole = policy.prove_api == "monolithic" and policy.channel_capacity == 1 and policy.gw == 1
    lines = [f"# {line}".rstrip() for line in comment.splitlines()]
    lines += [
        "[memory]",
        f"# key and matrices {resident / GIB:.1f} GiB, and {bound} partitions of {PARTITION_BYTES // GIB} GiB, its own figure",
        f'total_budget = "{budget // GIB}GiB"',
        "",
        "[gpus]",
        f"devices = [{', '.join(str(i) for i in range(len(machine.gpus)))}]",
        f"gpu_workers_per_device = {policy.gw or 1}",
        f"gpu_threads = {policy.gt or 0}",
        "",
        "[pipeline]",
        f"enabled = {'false' if whole else 'true'}",
        f"max_parallel_synthesis = {workers}",
    ]
    if policy.admission == "queue-target":
        lines.append(f"max_gpu_queue_depth = {policy.queue_target or 0}")
    unsaid = _unsaid(policy)
    if unsaid:
        lines += ["", "# Of this policy the daemon has no key for:", *(f"#   {line}" for line in unsaid)]
    return "\n".join(lines) + "\n"


def _unsaid(policy: Policy) -> list[str]:
    said = []
    if policy.j is not None and policy.j != MAX_PENDING:
        said.append(f"j = {policy.j}: set MaxPending = {policy.j} in Curio's [Cuzk] section")
    if policy.pw is not None and policy.pw < LEAST_SYNTHESIS:
        said.append(f"pw = {policy.pw}: it never runs fewer than {LEAST_SYNTHESIS} syntheses at once")
    if policy.permit_returns not in (None, "after-synthesis"):
        said.append(f"permit_returns = {policy.permit_returns}: it gives a permit back when synthesis ends")
    if policy.order not in (None, "by-proof"):
        said.append(f"order = {policy.order}: it takes the oldest proof first")
    for option, here in (("srs", "pinned"), ("pce", "pageable"), ("matvec", "cpu"), ("prep_msm", "cpu"), ("b_g2_msm", "cpu"),
                         ("quotient", "bellman")):  # fmt: skip
        value = getattr(policy, option)
        if value not in (None, here):
            said.append(f"{option} = {value}: it has {here}")
    return said
