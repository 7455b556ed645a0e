"""Long native calls that Ctrl-C ends at once.

Python delivers a signal only between its own instructions, so a call that stays in native code for minutes would hold
it back. Such a call runs in a thread of its own while the main thread waits, where signals arrive.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
WAIT_S = 0.1


def in_own_thread(function: Callable[..., T], *arguments: object) -> T:
    """`function(*arguments)`. On KeyboardInterrupt the call is abandoned: it must have no effect outside its arguments,
    and its thread ends with the process.

    Off the main thread, where no signal arrives, this is a plain call.
    """
    if threading.current_thread() is not threading.main_thread():
        return function(*arguments)
    results: list[T] = []
    failures: list[BaseException] = []

    def body() -> None:
        try:
            results.append(function(*arguments))
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(WAIT_S)
    if failures:
        raise failures[0]
    return results[0]
