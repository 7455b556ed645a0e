"""Ends of jobs other than a proof."""

from __future__ import annotations

from cuzk.errors import CuzkError, InputError, OutOfMemoryError, describe


class Cancelled(CuzkError):
    """Somebody did not want the job any more."""


class InUse(CuzkError):
    """A key that cannot go now."""

    exit_code = 2


class NeverFits(OutOfMemoryError):
    """A job that this machine can never take, with the numbers."""


class Expired(CuzkError):
    """A job whose deadline is over."""


class Rejected(InputError):
    """The input of a request is wrong."""


def is_final(error: BaseException) -> bool:
    """Whether the same request would fail again: wrong input does; a missing key, a lost device, a full machine need not."""
    return isinstance(error, Rejected)


def chain(error: BaseException) -> str:
    """The error and its causes, outermost first, on one line."""
    parts: list[str] = []
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        text = " ".join(describe(at).split())
        if not any(text in part for part in parts):
            parts.append(text)
        at = at.__cause__ or (None if at.__suppress_context__ else at.__context__)
    return ": ".join(parts)[:4000]
