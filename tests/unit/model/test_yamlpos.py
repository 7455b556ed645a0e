from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuzk.model.dump import yaml_text
from cuzk.model.yamlpos import MAX_DEPTH, MAX_FILE_BYTES, MAX_VALUES, Node, Pos, Problems, merge, parse, parse_value, read_file


def faults(text: str) -> list[str]:
    problems = Problems()
    parse(text, "f", problems)
    return list(problems.found)


def tree(text: str) -> Node:
    problems = Problems()
    node = parse(text, "f", problems)
    assert node is not None and not problems, problems.found
    return node


def test_values_know_their_place() -> None:
    node = tree("a: 1\nb:\n  - x\n  - {c: 2.5}\n")
    assert node.plain() == {"a": 1, "b": ["x", {"c": 2.5}]}
    found = node.find(("b", 1, "c"))
    assert found is not None and str(found.pos) == "f:4:9" and str(found.key_pos) == "f:4:6"
    assert node.find(("b", 2)) is None and node.find(("a", "x")) is None


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("12", 12), ("-3", -3), ("010", 10), ("130_278_869", 130278869), ("0x1F", 31), ("0o17", 15), ("1.5", 1.5),
        ("1e3", 1000.0),
        (".5", 0.5), ("true", True), ("False", False), ("null", None), ("~", None), ("", None), ("yes", "yes"), ("off", "off"),
        ("on", "on"), ("1:30", "1:30"), ("2026-11-29", "2026-11-29"), ("'12'", "12"), ('"true"', "true"), ("16GiB", "16GiB"),
        ("0x", "0x"), ("0o9", "0o9"), ("1.2.3", "1.2.3"), ("é", "é"),
    ],
)  # fmt: skip
def test_scalars_follow_yaml_1_2(scalar: str, value: object) -> None:
    found = tree(f"k: {scalar}").plain()["k"]
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "f:1:1: the file is empty"),
        ("# only a comment\n", "f:1:1: the file is empty"),
        ("- a\n", "f:1:1: a mapping (key: value) is needed at the top, not a list"),
        ("hello", "f:1:1: a mapping (key: value) is needed at the top, not 'hello'"),
        ("null", "f:1:1: a mapping (key: value) is needed at the top, not nothing (null)"),
        ("a: 1\nb: 2\na: 3\n", "f:3:1: a: key given twice (first in line 1)"),
        ("a:\n  b: 1\n  c: 2\n  b: 3\n", "f:4:3: a.b: key given twice (first in line 2)"),
        ("a:\n\tb: 1\n", "f:2:1: a tab in the indentation or before a key: use spaces"),
        ("a: &x 1\n", "f:1:4: a: anchors and aliases are not supported: use `extends`"),
        ("a: *x\n", "f:1:4: a: anchors and aliases are not supported: use `extends`"),
        ("<<: {a: 1}\n", "f:1:1: merge keys (<<) are not supported: use `extends`"),
        ("a: !!python/object:os.system ls\n", "f:1:4: a: tags (tag:yaml.org,2002:python/object:os.system) are not supported"),
        ("%YAML 1.1\n---\na: yes\n", "f:1:1: directives (%YAML, %TAG) are not supported"),
        ("a: 1\n---\nb: 2\n", "f:2:1: a second document: one file holds one"),
        ("a: .nan\n", "f:1:4: a: .nan is not a number to calculate with"),
        ("a: [1, -.inf]\n", "f:1:8: a.1: -.inf is not a number to calculate with"),
        ("a: 1e999\n", "f:1:4: a: 1e999 is too large"),
        ("a: " + "9" * 5000, "f:1:4: a: a number of 5000 digits"),
        ("1: x\n", "f:1:1: a key must be text, not 1: quote it"),
        ("true: x\n", "f:1:1: a key must be text, not true: quote it"),
        ("? [a, b]\n: c\n", "f:1:3: a key must be text"),
        ("{a: b}: c\n", "f:1:1: a key must be text"),
        ("a: [1, 2\nb: 3\n", "f:2:2: "),
        ("a: b: c\n", "f:1:5: "),
        ("a: 'open\n", "f:2:1: "),
        ("a: \x01\n", "f:1:4: a control character"),
        ("a: [" + "1, " * MAX_VALUES, f"f:1:{3 * MAX_VALUES - 4}: a."),
        ("a: " + "[" * (MAX_DEPTH + 1), f"f:1:{MAX_DEPTH + 3}: "),
        ("a: " + "[" * 100_000, f"f:1:{MAX_DEPTH + 3}: "),
    ],
)  # fmt: skip
def test_traps(text: str, expected: str) -> None:
    found = faults(text)
    assert any(line.startswith(expected) for line in found), found


def test_a_billion_laughs_is_refused_before_it_grows() -> None:
    lines = ["a0: &a0 [x]"] + [f"a{i}: &a{i} [" + ", ".join([f"*a{i - 1}"] * 9) + "]" for i in range(1, 30)]
    found = faults("\n".join(lines))
    assert found and all("anchors" in line for line in found)


def test_all_faults_of_a_file_at_once() -> None:
    found = faults("a: .nan\nb: &x 1\na: 2\n7: 3\n")
    assert [line.split(" ")[0] for line in found] == ["f:1:4:", "f:2:4:", "f:3:1:", "f:4:1:"]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"a: 1\nb: \xff\xfe\n", "f:2:4: not UTF-8 text (byte 0xff)"),
        (b"\xff\xfea\x00:\x00", "f:1:1: not UTF-8 text (byte 0xff)"),
        (b"\x00" * 40, "f:1:1: a control character"),
        (b"\x7fELF\x02\x01\x01" + bytes(range(32, 127)), "f:1:1: "),
        (b" " * (MAX_FILE_BYTES + 1), "f:1:1: larger than 1 MiB"),
    ],
)
def test_files_that_are_no_text(tmp_path: Path, raw: bytes, expected: str) -> None:
    path = tmp_path / "f.yaml"
    path.write_bytes(raw)
    problems = Problems()
    assert read_file(path, "f", problems) is None
    assert any(line.startswith(expected) for line in problems.found), problems.found


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    problems = Problems()
    assert read_file(tmp_path, "d", problems) is None
    assert read_file(tmp_path / "none", "n", problems) is None
    assert [line.split(":")[0] for line in problems.found] == ["d", "n"]


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")
    node = read_file(path, "f", Problems())
    assert node is not None and node.plain() == {"a": 1, "b": 2}


@given(st.binary(max_size=200))
def test_any_bytes_are_a_mapping_or_faults(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(raw)
    problems = Problems()
    node = read_file(path, "f", problems)
    assert (node is not None and isinstance(node.value, dict)) or problems


@given(st.text(alphabet="ab:-[]{}#&*!|>'\"%@`,? \n\t~<.019\x85\u2028", max_size=60))
def test_any_punctuation_is_a_mapping_or_faults(text: str) -> None:
    problems = Problems()
    node = parse(text, "f", problems)
    assert (node is not None and isinstance(node.value, dict)) or problems


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["C", "Z"]) | st.just(" "), max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc_01:- ", min_size=1, max_size=4), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(st.dictionaries(st.text("abc", min_size=1, max_size=3), plain, max_size=4).filter(bool))
def test_what_is_written_reads_back(data: dict[str, object]) -> None:
    problems = Problems()
    node = parse(yaml_text(data), "f", problems)
    assert node is not None and not problems, (yaml_text(data), problems.found)
    assert node.plain() == data


def test_merge_is_deep_and_the_later_wins() -> None:
    low, high = tree("a: {x: 1, y: 2}\nl: [1, 2]\nk: 1"), tree("a: {y: 3, z: 4}\nl: [9]")
    merged = merge(low, high)
    assert merged.plain() == {"a": {"x": 1, "y": 3, "z": 4}, "l": [9], "k": 1}
    assert low.plain()["a"] == {"x": 1, "y": 2}
    high.value["a"].replaces = True
    assert merge(low, high).plain()["a"] == {"y": 3, "z": 4}


def test_a_value_alone() -> None:
    assert [parse_value(t, "v", Problems()).plain() for t in ("12", "[1, a]", "{a: 1}", "after-send")] == [  # type: ignore[union-attr]
        12, [1, "a"], {"a": 1}, "after-send",
    ]  # fmt: skip


def test_faults_are_raised_in_order_of_place() -> None:
    from cuzk.errors import ScenarioError

    problems = Problems()
    problems.add(Pos("b", 2, 1), "x", "second")
    problems.add(Pos("a", 10, 1), ("y", 0), "first")
    problems.add(Pos("b", 10, 1), "", "third")
    with pytest.raises(ScenarioError) as error:
        problems.raise_if_any()
    assert error.value.problems == ("a:10:1: y.0: first", "b:2:1: x: second", "b:10:1: third")
    assert error.value.exit_code == 2
