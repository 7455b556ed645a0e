"""circom's witness calculator (circuit.wasm of circom 2) under wasmtime: from a circuit's input to its witness, without node.

The module shares 32-bit words with its caller: inputs go in signal by signal, named by the two halves of the 64-bit FNV-1a
hash of their names, and come out as all wires. It can call nothing of the system; what it prints goes to stderr.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzk import strict_json
from cuzk.errors import FormatError, HardwareMissing, InputError, ProofInvalid
from cuzk.groth16.field import FR_MODULUS, prime_name
from cuzk.groth16.formats.files import Path, read_small
from cuzk.groth16.own_thread import in_own_thread

FAULTS = {1: "signal not found", 2: "too many signals set", 3: "signal already set", 4: "an assertion of the circuit fails",
          5: "not enough memory", 6: "access past the end of an input array"}  # fmt: skip
"""The module's codes of failure."""
_WORD = 0xFFFFFFFF


def fnv1a(text: str) -> int:
    """The 64-bit FNV-1a hash of a name."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def read_input(path: Path) -> dict[str, list[int]]:
    """An input.json: each signal's values, nested arrays flattened. Raises FormatError with the signal's path."""
    document = strict_json.loads(path, read_small(path))
    if not isinstance(document, dict):
        raise FormatError(path, "a circuit's input is a JSON object: signal name to number, string or arrays of these", offset=0)
    found: dict[str, list[int]] = {}
    for name, value in document.items():
        for signal, values in _signals(path, name, value):
            found.setdefault(signal, []).extend(values)
    return found


def _signals(path: Path, name: str, value: Any) -> Iterator[tuple[str, list[int]]]:
    if isinstance(value, dict):  # a bus
        for key, inner in value.items():
            yield from _signals(path, f"{name}.{key}", inner)
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for number, inner in enumerate(value):
            yield from _signals(path, f"{name}[{number}]", inner)
    else:
        yield name, list(_numbers(path, name, value))


def _numbers(path: Path, name: str, value: Any) -> Iterator[int]:
    if isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _numbers(path, f"{name}[{number}]", inner)
        return
    if isinstance(value, bool):
        yield int(value)
        return
    try:
        if isinstance(value, str) and len(value) <= 200:
            yield int(value, 0) % FR_MODULUS
            return
        if isinstance(value, int):
            yield value % FR_MODULUS
            return
    except ValueError:
        pass
    raise FormatError(path, f"{name}: {str(value)[:40]!r} is not a whole number", offset=0)


class Calculator:
    """A loaded module."""

    def __init__(self, path: Path) -> None:
        """Raises FormatError for what is no witness calculator of BLS12-381, HardwareMissing without wasmtime."""
        try:
            import wasmtime
        except ImportError as error:
            raise HardwareMissing("cuzk witness needs wasmtime: pip install 'cuzk[witness]'") from error
        self.path, self._message = path, ""
        engine = wasmtime.Engine()
        try:
            module = wasmtime.Module(engine, read_small(path))
        except wasmtime.WasmtimeError as error:
            reason = str(error).splitlines()[0]
            raise FormatError(path, f"not a WebAssembly module: {reason}", offset=0) from error
        self._store = wasmtime.Store(engine)
        linker = wasmtime.Linker(engine)
        for wanted in module.imports:
            kind = wanted.type
            if wanted.module != "runtime" or not isinstance(kind, wasmtime.FuncType):
                message = f"imports {wanted.module}.{wanted.name}: not a witness calculator of circom 2"
                raise FormatError(path, message, offset=0)
            linker.define_func("runtime", wanted.name or "", kind, self._runtime(wanted.name or "", len(kind.results)))
        self._exports = linker.instantiate(self._store, module).exports(self._store)
        self._traps: tuple[type[BaseException], ...] = (wasmtime.Trap, wasmtime.WasmtimeError)
        needed = ("init", "getFieldNumLen32", "getRawPrime", "setInputSignal", "getWitnessSize", "getWitness", "getMessageChar")
        for name in needed:
            if name not in self._exports:
                raise FormatError(path, f"has no function {name}: not a witness calculator of circom 2", offset=0)
        self._words = int(self._call("getFieldNumLen32"))
        self._call("getRawPrime")
        prime = self._read()
        if prime != FR_MODULUS:
            raise FormatError(path, f"computes over {prime_name(prime)}; only BLS12-381 is supported (circom --prime bls12381)")

    def _runtime(self, name: str, results: int) -> Callable[..., Any]:
        def called(*arguments: int) -> Any:
            if name == "exceptionHandler":
                raise _CircuitFault(arguments[0] if arguments else 0)
            if name == "printErrorMessage":
                self._message += self._text() + "\n"
            elif name == "writeBufferMessage":
                print(self._text(), file=sys.stderr)
            return 0 if results else None

        return called

    def _text(self) -> str:
        characters: list[str] = []
        while (code := int(self._call("getMessageChar"))) and len(characters) < 1 << 16:
            characters.append(chr(code & 0xFF))
        return "".join(characters).rstrip("\n")

    def _call(self, name: str, *arguments: int) -> Any:
        signed = [a - (1 << 32) if a >= 1 << 31 else a for a in arguments]
        return self._exports[name](self._store, *signed)  # type: ignore[operator]

    def _read(self) -> int:
        return sum((int(self._call("readSharedRWMemory", k)) & _WORD) << (32 * k) for k in range(self._words))

    def witness(self, inputs: dict[str, list[int]], name: Path) -> NDArray[np.uint64]:
        """All wires, `(n, 4)` canonical. Raises InputError for signals that do not fit, ProofInvalid where an assertion of the
        circuit fails.
        """
        return in_own_thread(self._witness, inputs, name)

    def _witness(self, inputs: dict[str, list[int]], name: Path) -> NDArray[np.uint64]:
        signal = ""
        try:
            self._call("init", 1)
            total = 0
            for signal, values in inputs.items():
                high, low = divmod(fnv1a(signal), 1 << 32)
                size = int(self._call("getInputSignalSize", high, low)) if "getInputSignalSize" in self._exports else len(values)
                if size <= 0 < len(values):
                    raise InputError(f"{name}: {signal}: the circuit has no such input")
                if size != len(values):
                    raise InputError(f"{name}: {signal}: {len(values)} values given, the circuit takes {size}")
                for number, value in enumerate(values):
                    for k in range(self._words):
                        self._call("writeSharedRWMemory", k, value >> (32 * k) & _WORD)
                    self._call("setInputSignal", high, low, number)
                    total += 1
            expected = int(self._call("getInputSize")) if "getInputSize" in self._exports else total
            if total < expected:
                raise InputError(f"{name}: {total} values given, the circuit takes {expected}")
            count = int(self._call("getWitnessSize"))
            out = np.zeros((count, 8), np.uint32)
            for wire in range(count):
                self._call("getWitness", wire)
                out[wire] = [int(self._call("readSharedRWMemory", k)) & _WORD for k in range(self._words)]
            return out.view(np.uint64)
        except _CircuitFault as fault:
            raise self._told(fault.code, signal, name) from None
        except self._traps as error:
            cause = error.__cause__ or error.__context__
            if isinstance(cause, _CircuitFault):
                raise self._told(cause.code, signal, name) from None
            raise InputError(f"{self.path}: the module failed: {str(error).splitlines()[-1]}") from error

    def _told(self, code: int, signal: str, name: Path) -> InputError | ProofInvalid:
        detail = f": {self._message.strip()}" if self._message.strip() else ""
        if code == 4:
            return ProofInvalid(f"{name}: {FAULTS[4]}{detail}")
        return InputError(f"{name}: {signal}: {FAULTS.get(code, f'fault {code} of the circuit')}{detail}")


class _CircuitFault(Exception):
    def __init__(self, code: int) -> None:
        self.code = code
        super().__init__(str(code))
