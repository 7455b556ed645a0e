"""Work in two threads: pieces are computed while the caller still works on those before."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from queue import Empty, Full, Queue
from typing import TypeVar

T = TypeVar("T")
WAIT_S = 0.1


def ahead(pieces: Iterable[T], depth: int = 2) -> Iterator[T]:
    """The pieces in order, taken from `pieces` by a thread of their own that is up to `depth` ahead. What it raises is raised
    here; whoever stops asking stops it.
    """
    ready: Queue[tuple[bool, T | BaseException | None]] = Queue(depth)
    stopped = threading.Event()

    def hand_over(is_piece: bool, item: T | BaseException | None) -> None:
        while not stopped.is_set():
            try:
                return ready.put((is_piece, item), timeout=WAIT_S)
            except Full:
                continue

    def produce() -> None:
        try:
            for piece in pieces:
                hand_over(True, piece)
                if stopped.is_set():
                    return
            hand_over(False, None)
        except BaseException as error:
            hand_over(False, error)

    threading.Thread(target=produce, name="ahead", daemon=True).start()
    try:
        while True:
            try:
                is_piece, item = ready.get(timeout=WAIT_S)  # a signal gets through in between
            except Empty:
                continue
            if not is_piece:
                if item is not None:
                    raise item  # type: ignore[misc]
                return
            yield item  # type: ignore[misc]
    finally:
        stopped.set()
