"""The files that a scenario consists of: `extends`, references to parts, the library beside the package.

A *part* is a machine, circuit, calibration or pipeline. Where one is due, a file may say it in place, name a file
(`circuit: circuits/porep-32g.yaml`), or change one (`machine: {extends: machines/x.yaml, ram: 512GiB}`). A part file
holds its part under its own key (`machine: …`), so that it can be extended as well as named.

Names of files are relative to the file that says them; what is not there is looked for in the library.
"""

from __future__ import annotations

import difflib
import os
from pathlib import Path

import cuzk
from cuzk.model.yamlpos import BROKEN, Loc, Node, Pos, Problems, describe, merge, parse_value, read_file

PARTS = ("machine", "circuit", "calibration", "pipeline")
MAX_CHAIN = 32


def library() -> Path | None:
    """The directory of scenarios that ships with cuzk: inside the installed package, or beside it in a checkout."""
    package = Path(cuzk.__file__).parent
    for place in (package / "scenarios", package.parent / "scenarios"):
        if (place / "machines").is_dir():
            return place
    return None


def is_file_name(text: str) -> bool:
    """Whether the text of a part names a file; a pipeline may be a preset's name instead."""
    return "/" in text or text.endswith((".yaml", ".yml"))


def _shown(path: Path, shorten: bool) -> str:
    """The file's name in messages: as the user wrote it, or short where cuzk found it."""
    text = os.path.normpath(path)
    if shorten and os.path.isabs(text):
        near = os.path.relpath(text)
        return text if near.startswith("..") else near
    return text


class Loader:
    """Reads a scenario and all that it refers to. Faults go to `problems`; what is faulty stands as BROKEN."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self.incomplete = False
        """A file that was extended could not be read: what is missing may be in it."""
        self._done: dict[Path, Node | None] = {}
        self._open: list[tuple[Path, Pos | None]] = []
        """Files being read, each with the place of the `extends` that led to it."""

    def scenario(self, path: str | os.PathLike[str]) -> Node | None:
        """The whole tree of a scenario file; None if there is nothing to validate."""
        found = self.locate(os.fspath(path), Path())
        if found is None:
            self.problems.add(Pos(os.fspath(path)), "", f"no such file{self._near(os.fspath(path), Path())}")
            return None
        return self._file(found, None)

    def part(self, kind: str, node: Node, base: Path, loc: Loc) -> Node:
        """`node` with its reference or `extends` resolved; `base`: the directory of the file that holds it."""
        if isinstance(node.value, str) and (kind != "pipeline" or is_file_name(node.value)):
            loaded = self._referred(kind, node, base, loc)
            loaded.replaces, loaded.key_pos = True, node.key_pos
            return loaded
        if isinstance(node.value, dict) and "extends" in node.value:
            bases = self._bases(node, base, loc)
            own = Node({k: v for k, v in node.value.items() if k != "extends"}, node.pos, node.key_pos)
            below = [self._pick(kind, tree) for tree in bases]
            for over in [*below[1:], own]:
                below[0] = merge(below[0], over) if below else over
            whole = below[0] if below else own
            return Node(whole.value, node.pos, node.key_pos, replaces=True)
        return node

    def locate(self, name: str, base: Path) -> Path | None:
        """The file that `name` means, seen from directory `base`."""
        candidates = [base / name]
        place = library()
        if place is not None:
            candidates += [place / name, place / name.removeprefix("scenarios/")]
        try:
            return next((path for path in candidates if path.exists() and not path.is_dir()), None)
        except (OSError, ValueError):
            return None

    def _file(self, path: Path, cause: Pos | None) -> Node | None:
        key = Path(os.path.realpath(path))
        if key in self._done:
            return self._done[key]
        tree = read_file(path, _shown(path, cause is not None), self.problems)
        if tree is not None:
            self._open.append((key, cause))
            tree = self._resolve(tree, path.parent)
            self._open.pop()
        self._done[key] = tree
        return tree

    def _resolve(self, tree: Node, base: Path) -> Node:
        """`tree` laid over what it extends, its parts resolved."""
        children = dict(tree.value)
        for kind in PARTS:
            if kind in children:
                children[kind] = self.part(kind, children[kind], base, (kind,))
        self.mix(children.get("workload"), base)
        bases = self._bases(tree, base, ())
        children.pop("extends", None)
        result = Node(children, tree.pos, tree.key_pos)
        for below in reversed(bases):
            result = merge(below, result)
        return result

    def mix(self, workload: Node | None, base: Path) -> None:
        """Resolves the circuits of a mixed workload in place."""
        entries = workload.child("circuits") if workload is not None else None
        for i, entry in enumerate(entries.value if entries is not None and isinstance(entries.value, list) else ()):
            if isinstance(entry.value, dict) and "circuit" in entry.value:
                loc = ("workload", "circuits", i, "circuit")
                entry.value["circuit"] = self.part("circuit", entry.value["circuit"], base, loc)

    def _bases(self, tree: Node, base: Path, loc: Loc) -> list[Node]:
        """The trees of the files that `tree` extends, in order."""
        extends = tree.value.get("extends")
        if extends is None:
            return []
        items = extends.value if isinstance(extends.value, list) else [extends]
        trees = []
        for item in items:
            if item.value is BROKEN:
                self.incomplete = True
            elif not isinstance(item.value, str):
                where = (*loc, "extends")
                self.problems.add(item.pos, where, f"must be the name of a file or a list of them, not {describe(item.value)}")
                self.incomplete = True
            else:
                loaded = self._load(item, base, (*loc, "extends"))
                if loaded is None:
                    self.incomplete = True
                else:
                    trees.append(loaded)
        return trees

    def _load(self, name: Node, base: Path, loc: Loc) -> Node | None:
        path = self.locate(name.value, base)
        if path is None:
            self.problems.add(name.pos, loc, f"no such file '{name.value}'{self._near(name.value, base)}")
            return None
        key = Path(os.path.realpath(path))
        for i, (opened, _) in enumerate(self._open):
            if opened == key:
                back = [str(cause) for _, cause in self._open[i + 1 :] if cause is not None]
                chain = f", by way of {', '.join(back)}" if back else ""
                self.problems.add(name.pos, loc, f"a cycle: '{name.value}' is being read already{chain}")
                return None
        if len(self._open) >= MAX_CHAIN:
            self.problems.add(name.pos, loc, f"a chain of more than {MAX_CHAIN} files")
            return None
        return self._file(path, name.pos)

    def _referred(self, kind: str, node: Node, base: Path, loc: Loc) -> Node:
        tree = self._load(node, base, loc)
        if tree is None:
            return Node(BROKEN, node.pos)
        picked = self._pick(kind, tree)
        return Node(picked.value, picked.pos)

    @staticmethod
    def _pick(kind: str, tree: Node) -> Node:
        inner = tree.child(kind)
        return tree if inner is None else inner

    @staticmethod
    def _near(name: str, base: Path) -> str:
        """'; did you mean …?' from what is there."""
        known: list[str] = []
        for root in (base, library()):
            if root is not None:
                for pattern in ("*.yaml", f"{Path(name).parent}/*.yaml"):
                    try:
                        known += [path.relative_to(root).as_posix() for path in list(root.glob(pattern))[:500]]
                    except (OSError, ValueError, NotImplementedError):
                        continue
        stems = {Path(found).stem: found for found in reversed(known)}
        near = difflib.get_close_matches(Path(name).stem, stems, n=1, cutoff=0.6)
        return f"; did you mean '{stems[near[0]]}'?" if near else ""


def override(tree: Node, setting: str, loader: Loader, base: Path) -> Node:
    """`tree` with one `--set path=value` laid on it; the value is read as YAML."""
    path, equals, text = setting.partition("=")
    pos, problems = Pos(f"--set {setting}"), loader.problems
    keys = path.strip().split(".")
    if not equals or not all(keys):
        problems.add(pos, "", "must be path=value, such as policy.pw=12")
        return tree
    if keys[0] == "extends":
        problems.add(pos, path, "cannot be set: name the file's own keys")
        return tree
    found = Problems()
    value = parse_value(text, pos.file, found)
    for line, (file, row, col) in found.found.items():
        problems.add(pos, path, line.removeprefix(f"{Pos(file, row, col)}: "))
    if value is None or found:
        return tree
    value = _moved(value, pos)
    value.replaces = not isinstance(value.value, dict)
    if keys[-1] in PARTS:
        value = loader.part(keys[-1], value, base, tuple(keys))
        value.key_pos = pos
    elif keys == ["workload"]:
        loader.mix(value, base)
    elif keys[:2] == ["workload", "circuits"] and len(keys) < 4:
        entries = value if len(keys) == 2 else Node([value], pos, pos)
        loader.mix(Node({"circuits": entries}, pos, pos), base)
    return _set(tree, keys, value, pos, path, problems)


def _moved(node: Node, pos: Pos) -> Node:
    inner = node.value
    if isinstance(inner, dict):
        inner = {key: _moved(child, pos) for key, child in inner.items()}
    elif isinstance(inner, list):
        inner = [_moved(child, pos) for child in inner]
    return Node(inner, pos, pos)


def _set(tree: Node, keys: list[str], value: Node, pos: Pos, path: str, problems: Problems) -> Node:
    key, rest = keys[0], keys[1:]
    if tree.value is BROKEN:
        return tree
    if isinstance(tree.value, list):
        if not key.isdecimal() or int(key) >= len(tree.value):
            problems.add(pos, path, f"no element '{key}' in a list of {len(tree.value)}")
            return tree
        items = list(tree.value)
        items[int(key)] = _set(items[int(key)], rest, value, pos, path, problems) if rest else merge(items[int(key)], value)
        return Node(items, tree.pos, tree.key_pos)
    below = tree.value if isinstance(tree.value, dict) else {}
    old = below.get(key, Node({}, pos, pos))
    new = _set(old, rest, value, pos, path, problems) if rest else merge(old, value)
    return Node({**below, key: new}, tree.pos if below else pos, tree.key_pos)
