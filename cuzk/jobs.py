"""Jobs of PoSt and SnapDeals from their folders, and as assignments of a run.

A job is a folder with `vanilla.json` (items of a vanilla proof) and `statement.json`; the statement's keys say which kind it is.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cuzk.errors import InputError

if TYPE_CHECKING:
    from cuzk.groth16.key import ProvingKey
    from cuzk.groth16.template.bits import BitWitness
    from cuzk.vanilla.proving import Job

FILES = ("vanilla.json", "statement.json")


def open_job(directory: str) -> Job:
    """A job from its folder, checked in full. Raises InputError, FormatError with the place of a fault."""
    from cuzk.porep.statement import read_json
    from cuzk.vanilla.items import read_raw_items

    items, statement = (os.path.join(directory, name) for name in FILES)
    document = read_json(statement, 1 << 26)
    if isinstance(document, dict) and "comm_d_new_hex" in document:
        from cuzk.update.job import UpdateJob
        from cuzk.update.statement import read_statement as read_update
        from cuzk.update.vanilla import UpdateVanilla

        update = UpdateVanilla.of_bytes(read_raw_items(items), read_update(statement), items)
        update.check()
        return UpdateJob(update)
    from cuzk.post.job import PostJob
    from cuzk.post.statement import read_statement as read_post
    from cuzk.post.vanilla import PostVanilla

    post = PostVanilla.of_bytes(read_raw_items(items), read_post(statement), items)
    post.check()
    return PostJob(post)


class JobAssignments:
    """Jobs of one circuit, in turn: proof p is of job p modulo their number. See cuzk.groth16.assignments.Assignments."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        """Raises InputError for jobs of different circuits or numbers of partitions."""
        first = jobs[0]
        for job in jobs[1:]:
            if (job.what, job.partitions) != (first.what, first.partitions):
                theirs = f"{job.partitions} partition(s) of {job.what}, the first has {first.partitions} of {first.what}"
                raise InputError(f"jobs that do not go together: {theirs}")
        self._jobs = list(jobs)
        self.partitions: int | None = first.partitions

    def witness(self, proof: int, partition: int) -> BitWitness:
        """The values of a partition, made here from its items."""
        return self._jobs[proof % len(self._jobs)].witness(partition)

    def public_inputs(self, proof: int, partition: int) -> list[int]:
        return self._jobs[proof % len(self._jobs)].public_inputs(partition)

    def examples(self) -> Sequence[BitWitness]:
        return [self._jobs[0].witness(0)]

    def done(self, proof: int) -> None:
        pass


def open_jobs(key_path: str, directories: Sequence[str]) -> tuple[ProvingKey, JobAssignments]:
    """The key of some jobs' circuit (a file, or a folder of Filecoin's), and the jobs. Raises InputError, FormatError."""
    from cuzk.porep.keys import load_circuit_key

    jobs = [open_job(directory) for directory in directories]
    assignments = JobAssignments(jobs)
    first = jobs[0]
    return load_circuit_key(key_path, first.template, first.what, first.published), assignments
