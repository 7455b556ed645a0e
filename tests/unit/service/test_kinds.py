"""The kinds of the wire protocol: their inputs read, checked and turned into satisfied circuits; the keys that they name."""

from __future__ import annotations

import pytest

from cuzk.circuits.update.shape import update_shape
from cuzk.circuits.witness import require_satisfied
from cuzk.errors import InputError
from cuzk.porep.c1 import write_c1
from cuzk.porep.c1.write import sector_c1
from cuzk.porep.ids import SectorIds
from cuzk.porep.partition import PartitionMaker
from cuzk.porep.synthetic import SyntheticSector
from cuzk.post.job import PostCircuit
from cuzk.post.registered import registered_post
from cuzk.post.synthetic import synthetic_vanilla as synthetic_post
from cuzk.service.keys import folder_keys
from cuzk.service.kinds import standard_kinds
from cuzk.service.request import ProofRequest
from cuzk.update.job import UpdateCircuit
from cuzk.update.synthetic import synthetic_vanilla as synthetic_update
from cuzk.vanilla.items import item_bytes


def read(request: ProofRequest):
    reader = standard_kinds().of(request.kind).read
    assert reader is not None
    return reader(request)


@pytest.mark.parametrize(
    ("kind", "number", "circuit_id", "sectors"), [("winning", 4, "winning-2k", 1), ("window", 3, "wpost-2k", 2)]
)
def test_post_from_its_items(kind, number, circuit_id, sectors):
    registered = registered_post(kind, "2KiB")
    vanilla = synthetic_post(registered, bytes(31) + b"\x05", sectors)
    items = item_bytes(vanilla.items)
    asked = ProofRequest("a", number, registered_proof=registered.number, randomness=vanilla.statement.randomness,
                         vanilla=tuple(reversed(items)))  # fmt: skip
    found = read(asked)
    assert (found.circuit_id, found.partitions) == (circuit_id, 1)
    assert found.public_inputs(0) == vanilla.statement.public_inputs(0)
    circuit = PostCircuit(registered.shape)
    require_satisfied(circuit.template, found.witness(0, circuit), "partition 0")

    def wrong(**changes):
        with pytest.raises(InputError, match=f"{kind.capitalize()}PoSt parse failed") as caught:
            read(ProofRequest(**{**asked.__dict__, **changes}))
        return str(caught.value)

    assert "registered_proof" in wrong(registered_proof=0 if kind == "window" else 5)
    assert "randomness" in wrong(randomness=b"")
    assert "vanilla_proofs[0]" in wrong(vanilla=(b"short",))
    assert "there are none" in wrong(vanilla=())
    last = bytearray(items[0])
    last[-1] ^= 1
    assert "vanilla_proofs" in wrong(vanilla=(bytes(last), *items[1:]))
    wrong(randomness=bytes(31) + b"\x06")  # other challenges


def test_update_from_its_items():
    vanilla = synthetic_update(update_shape("2KiB"))
    statement = vanilla.statement
    asked = ProofRequest("a", 2, registered_proof=0, comm_r_old=statement.comm_r_old, comm_r_new=statement.comm_r_new,
                         comm_d_new=statement.comm_d_new, vanilla=tuple(item_bytes(vanilla.items)))  # fmt: skip
    found = read(asked)
    assert (found.circuit_id, found.partitions) == ("snap-2k", 1)
    circuit = UpdateCircuit(statement.shape)
    require_satisfied(circuit.template, found.witness(0, circuit), "partition 0")
    for changes, says in (
        ({"comm_r_new": b""}, "comm_r_new"),
        ({"registered_proof": 9}, "registered_proof"),
        ({"vanilla": ()}, "items"),
    ):
        with pytest.raises(InputError, match=r"SnapDeals parse failed") as caught:
            read(ProofRequest(**{**asked.__dict__, **changes}))
        assert says in str(caught.value)


def test_porep_from_its_c1_output(tmp_path):
    from cuzk.circuits.porep.shape import shape
    from cuzk.porep.c1 import Owner
    from cuzk.porep.ids import porep_id

    owner = Owner.of_miner(1000, 7)
    wanted = shape("2KiB")
    sector = SyntheticSector(wanted, SectorIds(owner.prover_id, 7, bytes(32), porep_id(wanted, "1.1")), b"\1" * 32, None)
    write_c1(sector_c1(sector, b"\1" * 32), tmp_path / "c1.json")
    data = (tmp_path / "c1.json").read_bytes()
    found = read(ProofRequest("a", 1, miner=1000, sector_number=7, vanilla=(data,)))
    assert (found.circuit_id, found.partitions) == ("porep-2k", 1)
    maker = PartitionMaker(wanted)
    maker.require_satisfied(found.witness(0, maker))
    assert read(ProofRequest("a", 1, vanilla=(data,))).circuit_id == "porep-2k"  # no miner: nobody's in particular
    for changes in ({"miner": 1001}, {"sector_number": 8}, {"vanilla": (data[:-5],)}, {"vanilla": ()}, {"vanilla": (b"", b"")}):
        with pytest.raises(InputError, match=r"^C1 parse failed: "):
            read(ProofRequest(**{"request_id": "a", "kind": 1, "miner": 1000, "sector_number": 7, "vanilla": (data,), **changes}))


@pytest.mark.parametrize("circuit_id", ["porep-2k", "winning-2k", "wpost-2k", "snap-2k"])
def test_a_key_that_is_not_there_is_said(tmp_path, circuit_id):
    with pytest.raises(InputError, match=r"no \.params file there"):
        folder_keys(str(tmp_path))(circuit_id)


@pytest.mark.parametrize("circuit_id", ["", "../../x", "porep-3k", "porep-32g/../x"])
def test_a_circuit_that_there_is_not(tmp_path, circuit_id):
    with pytest.raises(InputError, match="unknown circuit ID"):
        folder_keys(str(tmp_path))(circuit_id)
