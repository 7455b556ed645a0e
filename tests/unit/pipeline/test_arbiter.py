"""The arbiter decides: order of waiters, accounting, failure. Random sequences are in tests/laws."""

import pytest

from cuzk.pipeline.arbiter import FAILED, RETRY, Arbiter
from cuzk.pipeline.books import Books
from cuzk.pipeline.pools import OutOfMemory
from cuzk.pipeline.sets import PartitionSet

GIB = 1 << 30


def arbiter(**changes):
    given = {"locks": {"gpu_mutex:0": False, "gpu_mutex:1": False, "barging": True},
             "permits": {"synthesis": (2, "fifo"), "ordered": (1, "by-proof")},
             "channels": {"synthesized": 1}}  # fmt: skip
    return Arbiter(**{**given, **changes})


def ledger() -> Books:
    return Books({"ram": 10 * GIB, "pinned": 10 * GIB, "vram:0": 16 * GIB, "vram:1": 16 * GIB}, {"pinned": "ram"})


def woken(arb):
    out, arb.woken = arb.woken, []
    return out


# INV-4
def test_a_lock_is_handed_over_in_order_of_arrival():
    arb = arbiter()
    a, b, c = (PartitionSet(proof, 0) for proof in range(3))
    assert arb.acquire("A", a, "gpu_mutex:0") is True
    assert arb.acquire("B", b, "gpu_mutex:0") is False
    assert arb.acquire("C", c, "gpu_mutex:0") is False
    arb.release(a, "gpu_mutex:0")
    assert woken(arb) == [("B", True)]
    arb.release(b, "gpu_mutex:0")
    assert woken(arb) == [("C", True)]


def test_a_barging_lock_goes_to_whoever_comes_first():
    arb = arbiter()
    a, b = PartitionSet(0, 0), PartitionSet(1, 0)
    arb.acquire("A", a, "barging")
    assert arb.acquire("B", b, "barging") is False
    arb.release(a, "barging")
    assert woken(arb) == [("B", RETRY)]
    assert arb.acquire("A", a, "barging") is True, "the one who just unlocked takes it again"
    assert arb.acquire("B", b, "barging") is False
    arb.release(a, "barging")
    assert woken(arb) == [("B", RETRY)]
    assert arb.acquire("B", b, "barging") is True


def test_a_failed_waiter_that_was_told_to_retry_passes_the_lock_on():
    arb = arbiter()
    a, b, c = PartitionSet(0, 0), PartitionSet(1, 0), PartitionSet(2, 0)
    arb.acquire("A", a, "barging")
    arb.acquire("B", b, "barging")
    arb.acquire("C", c, "barging")
    arb.release(a, "barging")
    assert woken(arb) == [("B", RETRY)]
    arb.fail("proof", 1)
    woken(arb)
    assert arb.acquire("B", b, "barging") == FAILED
    assert ("C", RETRY) in woken(arb) or arb.acquire("C", c, "barging") is True


def test_waiters_of_an_ordered_permit_go_by_proof_and_partition():
    arb = arbiter()
    holder = PartitionSet(9, 9)
    arb.acquire("H", holder, "ordered")
    for proof, partition in ((3, 1), (1, 2), (1, 0)):
        arb.acquire((proof, partition), PartitionSet(proof, partition), "ordered")
    arb.release(holder, "ordered")
    assert woken(arb) == [((1, 0), True)]


def test_put_blocks_when_full_and_get_makes_room():
    arb = arbiter()
    sets = [PartitionSet(0, i) for i in range(3)]
    assert arb.put("P0", sets[0], "synthesized") is True
    assert arb.put("P1", sets[1], "synthesized") is False
    assert arb.get("G", "synthesized", gpu=1) is sets[0]
    assert sets[0].gpu == 1
    assert woken(arb) == [("P1", True)]
    assert arb.get("G", "synthesized") is sets[1]
    assert arb.get("G", "synthesized") is None
    assert arb.put("P2", sets[2], "synthesized") is True
    assert woken(arb) == [("G", sets[2])]


# INV-3
def test_a_claim_may_wait_but_an_allocation_never_does():
    books = ledger()
    pset = PartitionSet(0, 0)
    books.alloc(pset, "a", "ram", 7 * GIB)
    with pytest.raises(OutOfMemory) as caught:
        books.alloc(pset, "b", "ram", 4 * GIB)
    oom = caught.value
    assert (oom.pool, oom.request_bytes, oom.level_bytes, oom.capacity_bytes) == ("ram", 4 * GIB, 7 * GIB, 10 * GIB)
    assert oom.holders == [("a", 1, 7 * GIB)]
    assert books.pools["ram"].live == 7 * GIB and "b" not in pset.buffers


def test_pinned_memory_is_a_part_of_ram():
    books = ledger()
    pset = PartitionSet(0, 0)
    books.alloc(pset, "srs", "pinned", 6 * GIB)
    assert books.pools["ram"].live == books.pools["pinned"].live == 6 * GIB
    with pytest.raises(OutOfMemory) as caught:
        books.alloc(pset, "a", "ram", 5 * GIB)
    assert caught.value.pool == "ram"
    books.free(pset, "srs")
    assert books.pools["ram"].live == books.pools["pinned"].live == 0


def test_cached_memory_serves_its_own_allocator_only_until_it_is_trimmed():
    books = ledger()
    pset = PartitionSet(0, 0)
    books.alloc(pset, "d_bc", "vram:0", 12 * GIB, cached=True)
    books.free(pset, "d_bc")
    assert books.pools["vram:0"].reserved == 12 * GIB
    with pytest.raises(OutOfMemory):
        books.alloc(pset, "buckets", "vram:0", 5 * GIB)
    books.alloc(pset, "d_bc", "vram:0", 10 * GIB, cached=True)
    books.free(pset, "d_bc")
    assert books.trim("vram:0") == 12 * GIB
    books.alloc(pset, "buckets", "vram:0", 16 * GIB)


def test_try_alloc_takes_all_or_nothing_and_keeps_the_guard_free():
    books = ledger()
    pset = PartitionSet(0, 0)
    wants = [("d_a", "vram:0", 4 * GIB, False), ("d_bc", "vram:0", 8 * GIB, False)]
    assert books.try_alloc(pset, wants, guard=4 * GIB + 1) is False
    assert pset.buffers == {} and books.pools["vram:0"].live == 0
    assert books.try_alloc(pset, wants, guard=4 * GIB) is True
    assert set(pset.buffers) == {"d_a", "d_bc"}


def test_a_failed_proof_wakes_its_waiters_and_gives_everything_back():
    arb, books = arbiter(), ledger()
    mine, other = PartitionSet(0, 0), PartitionSet(1, 0)
    arb.acquire("M", mine, "synthesis")
    arb.acquire("M", mine, "gpu_mutex:0")
    books.alloc(mine, "a", "ram", GIB)
    waiting, queued = PartitionSet(0, 1), PartitionSet(0, 2)
    arb.acquire("O", other, "synthesis")
    assert arb.acquire("W", waiting, "synthesis") is False
    assert arb.put("Q", queued, "synthesized") is True
    assert arb.fail("proof", 0, "a bad witness") == [queued]
    assert woken(arb) == [("W", FAILED)]
    assert arb.is_failed(mine) and not arb.is_failed(other)
    assert books.free_all(mine) == [("a", "ram", GIB)]
    assert arb.release_all(mine) == ["gpu_mutex:0", "synthesis"]
    assert books.pools["ram"].live == 0
    assert arb.acquire("X", PartitionSet(2, 0), "gpu_mutex:0") is True
    assert arb.acquire("M", mine, "gpu_mutex:1") == FAILED


def test_a_failed_device_strands_nobody():
    arb = arbiter()
    holder, waiter = PartitionSet(0, 0), PartitionSet(1, 0)
    arb.acquire("H", holder, "gpu_mutex:1")
    assert arb.acquire("W", waiter, "gpu_mutex:1") is False
    assert arb.get("G1", "synthesized", gpu=1) is None
    assert arb.get("G0", "synthesized", gpu=0) is None
    arb.fail("device", 1, "sticky error")
    assert sorted(woken(arb)) == [("G1", FAILED), ("W", FAILED)]
    assert arb.get("G1", "synthesized", gpu=1) == FAILED
    arb.put("P", PartitionSet(2, 0), "synthesized")
    assert [actor for actor, _ in woken(arb)] == ["G0"]


def test_a_stopped_run_wakes_everyone():
    arb = arbiter()
    psets = [PartitionSet(i, 0) for i in range(3)]
    arb.acquire("A", psets[0], "gpu_mutex:0")
    arb.acquire("B", psets[1], "gpu_mutex:0")
    arb.put("P", psets[2], "synthesized")
    arb.fail("run", reason="interrupted")
    assert ("B", FAILED) in woken(arb)
    assert arb.get("G", "synthesized") == FAILED
    assert arb.acquire("A", psets[0], "synthesis") == FAILED


def test_what_is_not_held_cannot_be_given_back():
    arb, books = arbiter(), ledger()
    pset = PartitionSet(0, 0)
    with pytest.raises(KeyError):
        books.free(pset, "a")
    with pytest.raises(KeyError):
        arb.release(pset, "synthesis")
    books.alloc(pset, "a", "ram", 1)
    with pytest.raises(ValueError, match="twice"):
        books.alloc(pset, "a", "ram", 1)
    with pytest.raises(ValueError, match="3 units asked"):
        arb.acquire("A", pset, "synthesis", 3)
