"""The layout of a challenge in a C1 output, for each sector size.

`challenge_schema` is the document's structure; `Layout` says where in a challenge's hashes and numbers a path, a column
or a label lies. Trees C and R have a base path (arity 8), and at 32 GiB and above a path of a sub and of a top tree on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from cuzk.circuits.porep.shape import DRG_PARENTS, EXPANDER_PARENTS, LABEL_PARENTS, Shape, parent_sequence
from cuzk.porep.c1.schema import U32, Atom, Hash, Number, Phantom, Record, Repeated, Schema, atoms

PARTS = ("base_proof", "sub_proof", "top_proof")
FORMS = ("Single", "Sub", "Top")


def tree_parts(path: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Arities of a Poseidon tree from those of its path: the base tree's, then those of the trees on top of it. 2 KiB to 512 MiB
    have the base alone."""
    base = tuple(a for a in path[:9] if a == 8)
    return (base, *((a,) for a in path[len(base) :]))


def _steps(arities: tuple[int, ...]) -> Schema:
    step = Record((("hashes", Repeated(arities[0] - 1, Hash())), ("index", Number(arities[0] - 1))))
    return Record((("path", Repeated(len(arities), step)),))


def merkle_schema(parts: tuple[tuple[int, ...], ...]) -> Schema:
    """A Merkle proof: `{"data": {FORM: {...}}}`."""
    form = FORMS[len(parts) - 1]
    ends: tuple[tuple[str, Schema], ...] = (("root", Hash()), ("leaf", Hash()))
    if form == "Single":
        content = (*ends, ("path", _steps(parts[0])))
    else:
        content = (*((name, _steps(part)) for name, part in zip(PARTS, parts, strict=False)), *ends)
    return Record((("data", Record(((form, Record(content, variant=len(parts) - 1)),))),))


@cache
def challenge_schema(shape: Shape) -> Record:
    poseidon = merkle_schema(tree_parts(shape.path))
    column = Record((("index", Number(U32, 4)), ("rows", Repeated(shape.layers, Hash())), ("_h", Phantom())))
    opened = Record((("column", column), ("inclusion_proof", poseidon)))
    labelling = Record((("parents", Repeated(LABEL_PARENTS, Hash())), ("layer_index", Number(U32, 4)), ("node", Number())))
    columns = Record((
        ("c_x", opened), ("drg_parents", Repeated(DRG_PARENTS, opened)), ("exp_parents", Repeated(EXPANDER_PARENTS, opened)),
    ))  # fmt: skip
    return Record((
        ("comm_d_proofs", merkle_schema(((2,) * shape.tree_d_levels,))), ("comm_r_last_proof", poseidon),
        ("replica_column_proofs", columns), ("labeling_proofs", Repeated(shape.layers, labelling)), ("encoding_proof", labelling),
    ))  # fmt: skip


@dataclass(frozen=True)
class MerkleAt:
    """Places of a Merkle proof in a challenge: hashes `root`, `leaf`; for each level the first of its siblings, the number
    that is its index, and its arity."""

    path: str
    root: int
    leaf: int
    levels: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class ColumnAt:
    path: str
    index: int
    """A number."""
    rows: int
    """The first of the layers' hashes."""
    proof: MerkleAt


@dataclass(frozen=True)
class LabelAt:
    path: str
    parents: int
    layer: int
    node: int


@dataclass(frozen=True)
class Layout:
    """The places of a challenge's parts among its `hashes` hashes and `numbers` numbers."""

    shape: Shape
    schema: Record
    atoms: tuple[Atom, ...]
    """All values in the order of bincode."""
    data: MerkleAt
    replica: MerkleAt
    columns: tuple[ColumnAt, ...]
    """The node's own, six DRG parents, eight expander parents."""
    labels: tuple[LabelAt, ...]
    encoding: LabelAt

    @property
    def hashes(self) -> int:
        return self.schema.hashes

    @property
    def numbers(self) -> int:
        return self.schema.numbers

    def parent_rows(self, layer: int) -> list[int]:
        """The places, among a challenge's hashes, of the 37 labels that a label of `layer` (from 0) is made from."""
        drg, expander = self.columns[1 : 1 + DRG_PARENTS], self.columns[1 + DRG_PARENTS :]
        here = [c.rows + layer for c in drg]
        return parent_sequence(layer + 1, here + [c.rows + layer - 1 for c in expander if layer])

    @property
    def bincode_bytes(self) -> int:
        last = self.atoms[-1]
        return last.offset + last.width


class Places:
    """The places of a schema's values: of each path among its hashes or its numbers."""

    def __init__(self, schema: Schema) -> None:
        self.atoms = tuple(atoms(schema))
        self.hash: dict[str, int] = {}
        self.number: dict[str, int] = {}
        for atom in self.atoms:
            if atom.kind == "hash":
                self.hash[atom.path] = len(self.hash)
            elif atom.kind == "number":
                self.number[atom.path] = len(self.number)

    def merkle(self, prefix: str, arities: tuple[tuple[int, ...], ...]) -> MerkleAt:
        form = FORMS[len(arities) - 1]
        at = f"{prefix}.data.{form}"
        names = ("path",) if form == "Single" else PARTS[: len(arities)]
        levels = [
            (self.hash[f"{at}.{name}.path[{k}].hashes[0]"], self.number[f"{at}.{name}.path[{k}].index"], arity)
            for name, part in zip(names, arities, strict=True)
            for k, arity in enumerate(part)
        ]
        return MerkleAt(at, self.hash[f"{at}.root"], self.hash[f"{at}.leaf"], tuple(levels))


@cache
def layout(shape: Shape) -> Layout:
    where = Places(challenge_schema(shape))
    hash_at, number_at, merkle = where.hash, where.number, where.merkle
    parts = tree_parts(shape.path)

    def column(at: str) -> ColumnAt:
        proof = merkle(f"{at}.inclusion_proof", parts)
        return ColumnAt(at, number_at[f"{at}.column.index"], hash_at[f"{at}.column.rows[0]"], proof)

    def labelling(at: str) -> LabelAt:
        return LabelAt(at, hash_at[f"{at}.parents[0]"], number_at[f"{at}.layer_index"], number_at[f"{at}.node"])

    head = "replica_column_proofs"
    names = [f"{head}.c_x", *(f"{head}.drg_parents[{i}]" for i in range(DRG_PARENTS)),
             *(f"{head}.exp_parents[{i}]" for i in range(EXPANDER_PARENTS))]  # fmt: skip
    return Layout(
        shape, challenge_schema(shape), where.atoms,
        merkle("comm_d_proofs", ((2,) * shape.tree_d_levels,)), merkle("comm_r_last_proof", parts),
        tuple(column(name) for name in names), tuple(labelling(f"labeling_proofs[{k}]") for k in range(shape.layers)),
        labelling("encoding_proof"),
    )  # fmt: skip
