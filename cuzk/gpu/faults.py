"""The meaning of a failing CUDA call: is the context spoiled, or was only this call refused?

A *sticky* error spoils the context: every later call of the process fails too, and only a fresh process can use the GPU again.
After any other error the context is as good as before, so that one proof fails and the process lives.
"""

from __future__ import annotations

from cuzk.errors import CuzkError, OutOfMemoryError

MEMORY_ALLOCATION = 2

STICKY = {
    214: "ECCUncorrectable",
    220: "NvlinkUncorrectable",
    226: "Contained",
    700: "IllegalAddress",
    702: "LaunchTimeout",
    710: "Assert",
    714: "HardwareStackError",
    715: "IllegalInstruction",
    716: "MisalignedAddress",
    717: "InvalidAddressSpace",
    718: "InvalidPc",
    719: "LaunchFailure",
    721: "TensorMemoryLeak",
    810: "MpsClientTerminated",
    911: "ExternalDevice",
}
"""An exception on the device. The runtime and the driver number these alike."""

GONE = {
    3: "InitializationError",
    4: "CudartUnloading",
    46: "DevicesUnavailable",
    100: "NoDevice",
    709: "ContextIsDestroyed",
    802: "SystemNotReady",
    806: "MpsRpcFailure",
    807: "MpsServerNotReady",
}
"""The device or its context is not there any more."""

REFUSED = frozenset(
    (1, MEMORY_ALLOCATION, 9, 12, 16, 17, 21, 98, 101, 200, 209, 218, 221, 222, 300, 301, 302, 303, 400, 500, 600, 701, 712, 713,
     720, 800, 801, 912)
)  # fmt: skip
"""Wrong arguments, modules that cannot be loaded, resources that do not suffice: the call had no effect."""


class CudaError(CuzkError):
    """The driver refused a call. The context is as good as before: the proof fails, and nothing else."""


class HostMemoryRefused(OutOfMemoryError):
    """The driver could not page-lock host memory."""

    pool = "ram"


def spoils(status: int) -> bool | None:
    """Whether a CUDA status ends the context; None where the number alone does not say (999 Unknown, future codes)."""
    if status in STICKY or status in GONE:
        return True
    return False if status in REFUSED else None
