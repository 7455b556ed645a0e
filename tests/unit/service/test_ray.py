"""Hosts of a local Ray cluster: real proofs on their CPU devices, lost hosts, nothing counted twice."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cuzk.cli.main import main
from cuzk.errors import CuzkError, InputError
from cuzk.groth16.formats.proof import Proof
from cuzk.groth16.load import load_key
from cuzk.groth16.verify import Verifier
from cuzk.service.prover import Made, Slot, Task

ROOT = Path(__file__).parents[3]
FIXTURE = ROOT / "tests" / "fixtures" / "chain1k"
SCENARIO = ROOT / "scenarios" / "demo-proofs.yaml"

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
ray = pytest.importorskip("ray", reason="Ray is not installed (pip install 'cuzk[ray]')")

from cuzk.service.ray_pool import RayPool  # noqa: E402


class SlowProver:
    """Takes its time for a partition, and says where it was made."""

    width = 1

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def prove(self, task: Task) -> None:
        import time

        for partition in task.partitions:
            (Path(self.folder) / f"{partition}.{os.getpid()}").touch()
            for _ in range(10):
                time.sleep(0.05)
                if task.cancelled():
                    from cuzk.service.failures import Cancelled

                    raise Cancelled("cancelled")
            if partition == 13:
                raise InputError("partition 13 brings bad luck")
            task.on_made(Made(partition, bytes([partition]) * 192))

    def slots(self) -> list[Slot]:
        return [Slot(0, str(os.getpid()))]

    def load(self, circuit_id: str) -> float:
        return 0.5

    def evict(self, circuit_id: str) -> int | None:
        return 7

    def loaded(self) -> list[dict[str, Any]]:
        return [{"circuit_id": "toy", "bytes": 7, "users": 0, "load_s": 0.5, "idle_s": 0.0}]


class SlowSpec:
    def __init__(self, folder: str) -> None:
        self.folder = folder

    def prover(self) -> Any:
        return SlowProver(self.folder)


@pytest.fixture
def cluster() -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    found = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    found.add_node(num_cpus=1)
    ray.init(address=found.address, log_to_driver=False, configure_logging=False, logging_level=logging.ERROR)
    try:
        yield found
    finally:
        ray.shutdown()
        found.shutdown()


def test_partitions_of_lost_hosts_are_made_by_others_and_count_once(cluster, tmp_path):
    pool = RayPool("auto", SlowSpec(str(tmp_path)))
    assert len(pool.slots()) == 2 and pool.load("toy") == 0.5
    assert pool.loaded()[0]["bytes"] == 14 and pool.evict("toy") == 14
    made: list[Made] = []

    def kill() -> None:
        os.kill(int(pool.slots()[0].name), 9)

    timer = threading.Timer(1.2, kill)
    timer.start()
    pool.prove(Task("a", "statement", list(range(8)), made.append))  # type: ignore[arg-type]
    timer.join()
    assert Counter(one.partition for one in made) == {n: 1 for n in range(8)}
    assert pool.lost == 1 and len(pool.slots()) == 2  # a fresh actor has taken its place
    started = Counter(int(path.name.partition(".")[0]) for path in tmp_path.iterdir())
    assert started.total() > 8  # some were begun twice

    # errors of the host come as they are; a cancelled task ends and leaves its hosts free
    with pytest.raises(InputError, match="bad luck"):
        pool.prove(Task("b", "statement", [13], made.append))  # type: ignore[arg-type]
    asked = []
    with pytest.raises(CuzkError, match="cancelled"):
        pool.prove(Task("c", "statement", list(range(8)), made.append, cancelled=lambda: len(asked) > 2 or bool(asked.append(1))))  # type: ignore[arg-type,func-returns-value]
    made.clear()
    pool.prove(Task("c", "statement", [1, 2], made.append))  # type: ignore[arg-type]
    assert len(made) == 2

    # a whole machine goes
    cluster.remove_node(next(node for node in cluster.list_all_nodes() if not node.is_head()))
    made.clear()
    pool.prove(Task("d", "statement", list(range(4)), made.append))  # type: ignore[arg-type]
    assert Counter(one.partition for one in made) == {n: 1 for n in range(4)}
    pool.close()


def test_run_on_ray_makes_real_proofs(cluster, tmp_path, capsys):
    files = ["--key", str(FIXTURE / "chain1k.zkey"), "--witness", str(FIXTURE / "chain1k.wtns")]
    options = [
        "--set",
        "workload.proofs=2",
        "--set",
        "circuit.partitions=3",
        "--ray",
        "auto",
        "-o",
        str(tmp_path / "out"),
        "--json",
    ]
    assert main(["run", str(SCENARIO), *files, *options]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["counts"] == {"proofs": 2, "partitions": 6, "failed_proofs": 0} and len(document["ray"]["devices"]) == 2
    verifier = Verifier(load_key(FIXTURE / "chain1k.zkey").verifying_key())
    seen = set()
    for number in range(2):
        data = (tmp_path / "out" / f"proof-{number:03d}.bin").read_bytes()
        assert len(data) == 3 * 192
        for partition in range(3):
            proof = Proof.from_bytes(data[192 * partition : 192 * (partition + 1)])
            public = json.loads((tmp_path / "out" / f"proof-{number:03d}" / f"public-{partition:02d}.json").read_text())
            assert verifier.accepts(proof, [int(value) for value in public])
            seen.add(proof.a)
    assert len(seen) == 6
    assert main(["run", str(SCENARIO), *files[:1], "/nowhere.zkey", *files[2:], "--ray", "auto"]) == 2
    assert "/nowhere.zkey" in capsys.readouterr().err


def test_no_cluster_is_an_error(capsys):
    files = ["--key", str(FIXTURE / "chain1k.zkey"), "--witness", str(FIXTURE / "chain1k.wtns")]
    assert main(["run", str(SCENARIO), *files, "--ray", "127.0.0.1:1"]) == 2
    assert "--ray 127.0.0.1:1" in capsys.readouterr().err
