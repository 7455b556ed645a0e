"""The arbiter decides: order of waiters, accounting, failure. Random sequences are in tests/laws."""

import pytest

from cuzk.pipeline.arbiter import FAILED, RETRY, Arbiter, OutOfMemory, Token

GIB = 1 << 30


def arbiter(**changes):
    given = {"pools": {"ram": 10 * GIB, "pinned": 10 * GIB, "vram:0": 16 * GIB, "vram:1": 16 * GIB},
             "locks": {"gpu_mutex:0": False, "gpu_mutex:1": False, "barging": True},
             "permits": {"synthesis": (2, "fifo"), "ordered": (1, "by-proof")},
             "channels": {"synthesized": 1}, "parents": {"pinned": "ram"}}  # fmt: skip
    return Arbiter(**{**given, **changes})


def woken(arb):
    out, arb.woken = arb.woken, []
    return out


# INV-4
def test_a_lock_is_handed_over_in_order_of_arrival():
    arb = arbiter()
    a, b, c = (Token(proof, 0) for proof in range(3))
    assert arb.acquire("A", a, "gpu_mutex:0") is True
    assert arb.acquire("B", b, "gpu_mutex:0") is False
    assert arb.acquire("C", c, "gpu_mutex:0") is False
    arb.release(a, "gpu_mutex:0")
    assert woken(arb) == [("B", True)]
    arb.release(b, "gpu_mutex:0")
    assert woken(arb) == [("C", True)]


def test_a_barging_lock_goes_to_whoever_comes_first():
    arb = arbiter()
    a, b = Token(0, 0), Token(1, 0)
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
    a, b, c = Token(0, 0), Token(1, 0), Token(2, 0)
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
    holder = Token(9, 9)
    arb.acquire("H", holder, "ordered")
    for proof, partition in ((3, 1), (1, 2), (1, 0)):
        arb.acquire((proof, partition), Token(proof, partition), "ordered")
    arb.release(holder, "ordered")
    assert woken(arb) == [((1, 0), True)]


def test_put_blocks_when_full_and_get_makes_room():
    arb = arbiter()
    sets = [Token(0, i) for i in range(3)]
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
    arb = arbiter()
    token = Token(0, 0)
    arb.alloc(token, "a", "ram", 7 * GIB)
    with pytest.raises(OutOfMemory) as caught:
        arb.alloc(token, "b", "ram", 4 * GIB)
    oom = caught.value
    assert (oom.pool, oom.request_bytes, oom.level_bytes, oom.capacity_bytes) == ("ram", 4 * GIB, 7 * GIB, 10 * GIB)
    assert oom.holders == [("a", 1, 7 * GIB)]
    assert arb.pools["ram"].live == 7 * GIB and "b" not in token.buffers


def test_pinned_memory_is_a_part_of_ram():
    arb = arbiter()
    token = Token(0, 0)
    arb.alloc(token, "srs", "pinned", 6 * GIB)
    assert arb.pools["ram"].live == arb.pools["pinned"].live == 6 * GIB
    with pytest.raises(OutOfMemory) as caught:
        arb.alloc(token, "a", "ram", 5 * GIB)
    assert caught.value.pool == "ram"
    arb.free(token, "srs")
    assert arb.pools["ram"].live == arb.pools["pinned"].live == 0


def test_cached_memory_serves_its_own_allocator_only_until_it_is_trimmed():
    arb = arbiter()
    token = Token(0, 0)
    arb.alloc(token, "d_bc", "vram:0", 12 * GIB, cached=True)
    arb.free(token, "d_bc")
    assert arb.pools["vram:0"].reserved == 12 * GIB
    with pytest.raises(OutOfMemory):
        arb.alloc(token, "buckets", "vram:0", 5 * GIB)
    arb.alloc(token, "d_bc", "vram:0", 10 * GIB, cached=True)
    arb.free(token, "d_bc")
    assert arb.trim("vram:0") == 12 * GIB
    arb.alloc(token, "buckets", "vram:0", 16 * GIB)


def test_try_alloc_takes_all_or_nothing_and_keeps_the_guard_free():
    arb = arbiter()
    token = Token(0, 0)
    wants = [("d_a", "vram:0", 4 * GIB, False), ("d_bc", "vram:0", 8 * GIB, False)]
    assert arb.try_alloc(token, wants, guard=4 * GIB + 1) is False
    assert token.buffers == {} and arb.pools["vram:0"].live == 0
    assert arb.try_alloc(token, wants, guard=4 * GIB) is True
    assert set(token.buffers) == {"d_a", "d_bc"}


def test_a_failed_proof_wakes_its_waiters_and_gives_everything_back():
    arb = arbiter()
    mine, other = Token(0, 0), Token(1, 0)
    arb.acquire("M", mine, "synthesis")
    arb.acquire("M", mine, "gpu_mutex:0")
    arb.alloc(mine, "a", "ram", GIB)
    waiting, queued = Token(0, 1), Token(0, 2)
    arb.acquire("O", other, "synthesis")
    assert arb.acquire("W", waiting, "synthesis") is False
    assert arb.put("Q", queued, "synthesized") is True
    assert arb.fail("proof", 0, "a bad witness") == [queued]
    assert woken(arb) == [("W", FAILED)]
    assert arb.is_failed(mine) and not arb.is_failed(other)
    assert arb.unwind(mine) == ["a", "gpu_mutex:0", "synthesis"]
    assert arb.pools["ram"].live == 0
    assert arb.acquire("X", Token(2, 0), "gpu_mutex:0") is True
    assert arb.acquire("M", mine, "gpu_mutex:1") == FAILED


def test_a_failed_device_strands_nobody():
    arb = arbiter()
    holder, waiter = Token(0, 0), Token(1, 0)
    arb.acquire("H", holder, "gpu_mutex:1")
    assert arb.acquire("W", waiter, "gpu_mutex:1") is False
    assert arb.get("G1", "synthesized", gpu=1) is None
    assert arb.get("G0", "synthesized", gpu=0) is None
    arb.fail("device", 1, "sticky error")
    assert sorted(woken(arb)) == [("G1", FAILED), ("W", FAILED)]
    assert arb.get("G1", "synthesized", gpu=1) == FAILED
    arb.put("P", Token(2, 0), "synthesized")
    assert [actor for actor, _ in woken(arb)] == ["G0"]


def test_a_stopped_run_wakes_everyone():
    arb = arbiter()
    tokens = [Token(i, 0) for i in range(3)]
    arb.acquire("A", tokens[0], "gpu_mutex:0")
    arb.acquire("B", tokens[1], "gpu_mutex:0")
    arb.put("P", tokens[2], "synthesized")
    arb.fail("run", reason="interrupted")
    assert ("B", FAILED) in woken(arb)
    assert arb.get("G", "synthesized") == FAILED
    assert arb.acquire("A", tokens[0], "synthesis") == FAILED


def test_what_is_not_held_cannot_be_given_back():
    arb = arbiter()
    token = Token(0, 0)
    with pytest.raises(KeyError):
        arb.free(token, "a")
    with pytest.raises(KeyError):
        arb.release(token, "synthesis")
    arb.alloc(token, "a", "ram", 1)
    with pytest.raises(ValueError, match="twice"):
        arb.alloc(token, "a", "ram", 1)
    with pytest.raises(ValueError, match="3 units asked"):
        arb.acquire("A", token, "synthesis", 3)
