"""One GPU and what it holds for the whole run: the key's lists and matrices where the policy wants them, tables, streams."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from cuzk.gpu.matvec import CsrMatrix, TemplateMatrices
from cuzk.gpu.msm_plan import Group
from cuzk.gpu.quotient import Quotient
from cuzk.gpu.split import KeyRows, WireIndex, list_finite
from cuzk.gpu.tables import build_pair_sums
from cuzk.gpu.turns import Turns
from cuzk.groth16.gpu.streamed_key import LARGEST_RING, StreamedKey, max_chunk, plan_ring
from cuzk.groth16.key import ProvingKey, Query
from cuzk.groth16.prover.quotient import NEEDS_C
from cuzk.groth16.prover.steps import G1_QUERIES

QUERIES = (*G1_QUERIES, "b_g2")


def _group(name: str) -> Group:
    """The place of a list's points."""
    return "g2" if name == "b_g2" else "g1"


def lists_of(key: ProvingKey, quotient: str, with_b_g2: bool) -> dict[str, np.ndarray]:
    """The lists of points that a GPU works with, each in one piece: h first."""
    lists = {"h": key.h_points(quotient), **{name: key.query(name, quotient).points for name in G1_QUERIES}}
    if with_b_g2:
        lists["b_g2"] = key.b_g2_query.points
    return {name: np.ascontiguousarray(points) for name, points in lists.items()}


class ProvingGpu:
    """Addresses are device memory, or of the host where the key lies there. Everything is freed by `free`."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self.quotient: Quotient | None = None
        self.points: dict[str, int] = {}
        """List of the key -> address: device memory, page-locked or plain host memory, as the policy says."""
        self.first_sum: dict[str, int] = {}
        """List of the key -> index of the first of its sums of neighbours, which lie behind its points on the device."""
        self.key_on_device = False
        self.rows: dict[str, KeyRows] = {}
        """Query -> its rows, where the device splits. Queries that split alike have equal values."""
        self.matrices: dict[str, CsrMatrix] = {}
        """a, b (and c), where the device multiplies rows of CSR."""
        self.template: TemplateMatrices | None = None
        self.wires: WireIndex | None = None
        self.turns: Turns | None = None
        """The one stream on which all threads' work is queued: with a streamed key."""
        self.streamed: StreamedKey | None = None
        self._owned: list[Any] = []
        self._local = threading.local()

    # -- streams -----------------------------------------------------------------------------------------

    def stream(self, name: str = "work") -> Any:
        """This thread's CUDA stream of that name: work; or copies, which go on beside it. With a streamed key all work on one."""
        if self.turns is not None and name == "work":
            return self.turns.stream
        streams = self._local.__dict__.setdefault("streams", {})
        if name not in streams:
            streams[name] = self.device.stream()
        return streams[name]

    def finish(self) -> None:
        """Until this thread's streams have done all that was queued on them."""
        for stream in self._local.__dict__.get("streams", {}).values():
            event = self.device.event()
            self.device.record(event, stream)
            self.device.wait(event)
        if self.turns is not None:
            self.turns.finish()

    # -- what stays --------------------------------------------------------------------------------------

    def place_quotient(self, key: ProvingKey, quotient: str, mont: bool) -> None:
        """`mont`: the form of the rows that will come."""
        self.quotient = Quotient(self.device, quotient, key.log_domain, root=key.root, mont=mont)

    def place_key(self, key: ProvingKey, quotient: str, where: str, with_b_g2: bool, splits: bool,
                  pair_sums: bool = False) -> None:  # fmt: skip
        """The lists that the GPU works with in VRAM, page-locked, or left in the file's pages; with `splits` (they are in VRAM
        then) their rows too, with `pair_sums` (they are there then) the sums of neighbours behind them."""
        self.key_on_device = where == "vram"
        for name, points in lists_of(key, quotient, with_b_g2).items():
            if where == "vram":
                memory = self._upload_points(name, points, pair_sums and name in QUERIES)
            elif where == "pinned":
                memory = self.device.pinned(points.nbytes)
                memory.array[:] = points.view(np.uint8).reshape(-1)
            else:
                self.points[name] = points.ctypes.data
                continue
            self._owned.append(memory)
            self.points[name] = memory.address
        if splits:
            for name in QUERIES:
                self.rows[name] = self._rows(name, key.query(name, quotient))
            self._share_rows(key)

    def stream_key(self, key: ProvingKey, quotient: str, lists: dict[str, np.ndarray], room_bytes: int, locked: bool,
                   borders: list[int]) -> None:  # fmt: skip
        """The lists stay in the host's memory (`lists`, `locked` or not) and pass by in chunks; what `room_bytes` of VRAM hold
        beside the ring for them stays there. Their rows are placed as the device will split them. OutOfMemoryError."""
        self.turns = Turns(self.device)
        longest = max(map(len, lists.values()))
        plan = plan_ring(min(room_bytes, LARGEST_RING), self.device.multiprocessors, max_chunk(longest))
        self.streamed = StreamedKey(
            self.device, self.turns, lists, plan, locked=locked, borders=borders, room_bytes=room_bytes - plan.total_bytes
        )
        for name in QUERIES:
            self.rows[name] = self._rows(name, key.query(name, quotient))
        self._share_rows(key)

    def _upload_points(self, name: str, points: np.ndarray, pair_sums: bool) -> Any:
        if not pair_sums:
            return self.device.upload(points, f"the key's {name} points")
        n = len(points)
        sums_bytes = n // 2 * points.itemsize * points.shape[1]
        memory = self.device.upload(points, f"the key's {name} points and their sums", behind_bytes=sums_bytes)
        build_pair_sums(self.device, _group(name), n, memory.address, self.stream())
        self.first_sum[name] = n
        return memory

    def _rows(self, name: str, query: Query) -> KeyRows:
        wires = finite = 0
        if query.wires is not None:
            numbers = np.ascontiguousarray(query.wires, dtype=np.uint32)
            memory = self.device.upload(numbers, f"the wires of the key's {name} points")
            self._owned.append(memory)
            wires = memory.address
        if query.infinities and len(query):
            finite = self._finite(name, query)
        return KeyRows(len(query), query.first, wires, finite)

    def _finite(self, name: str, query: Query) -> int:
        """Address of the bitmap of the rows that are not infinity; 0 where it is known that none is."""
        words, what = -(-len(query) // 32), f"which of the key's {name} points are infinity"
        if self.streamed is not None:  # they are not on the device
            if query.finite is None:
                return 0
            bits = np.zeros(4 * words, np.uint8)
            bits[: query.finite.nbytes] = query.finite
            memory = self.device.upload(bits, what)
            self._owned.append(memory)
        else:
            memory = self.device.allocate(4 * words, what)
            self._owned.append(memory)
            list_finite(self.device, _group(name), len(query), self.points[name], memory.address, self.stream())
            self.finish()
        return int(memory.address)

    def _share_rows(self, key: ProvingKey) -> None:
        """The two lists of B have the same rows, unless somebody made them apart; then one split serves both."""
        one, two = key.b_g1_query, key.b_g2_query
        rows, other = self.rows["b_g1"], self.rows["b_g2"]
        same_wires = one.wires is two.wires or (
            one.wires is not None and two.wires is not None and np.array_equal(one.wires, two.wires)
        )
        if not same_wires or (rows.rows, rows.first, bool(rows.finite)) != (other.rows, other.first, bool(other.finite)):
            return
        if rows.finite:
            bitmaps = [self.device.download(r.finite, np.empty(-(-r.rows // 32), np.uint32)) for r in (rows, other)]
            if not np.array_equal(*bitmaps):
                return
        for address in {other.wires, other.finite} - {rows.wires, rows.finite, 0}:
            block = next(memory for memory in self._owned if memory.address == address)
            self._owned.remove(block)
            block.free()
        self.rows["b_g2"] = rows

    @property
    def has_matrices(self) -> bool:
        return self.template is not None or bool(self.matrices)

    def place_matrices(self, key: ProvingKey, quotient: str, splits: bool) -> None:
        """Those that the quotient needs. A template's come with the places of its field elements if the device splits."""
        system: Any = key.system
        names = "abc" if NEEDS_C[quotient] else "ab"
        template = getattr(system, "template", None)
        if template is not None:
            self.template = TemplateMatrices(self.device, template, tuple(range(len(names))))
            if splits:
                self.wires = WireIndex(self.device, template, self.stream())
            return
        for name in names:
            matrix = getattr(system, name)
            if matrix is None:  # a key without C: its rows are those of A times those of B, as a satisfied circuit has them
                continue
            self.matrices[name] = CsrMatrix(self.device, matrix.row_ptr, matrix.col, matrix.coef_id, system.table_mont)

    def free(self) -> None:
        if self.streamed is not None:
            self.streamed.free()
        for held in (self.quotient, self.template, self.wires, *self.matrices.values(), *self._owned):
            if held is not None:
                held.free()
        self.device.close()
