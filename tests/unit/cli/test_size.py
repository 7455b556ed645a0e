"""`cuzk size`: the cheapest machines that make a target, and nothing cheaper was cut."""

import json

import pytest

from cuzk.cli.main import main
from cuzk.errors import InputError
from cuzk.planning.target import one_target, seconds_a_proof

CARD = ("vram: {v}GiB, sms: {s}, clock_mhz: 2452, imad: 128, memory_bandwidth: 896GB/s, link_generation: 5, link_width: 16, "
        "power_w: 300, capability: '12.0', price_usd: {p}")  # fmt: skip
HOST = "cores: {c}, smt: 2, dram_bandwidth: 300GB/s, ram_most: 768GiB, gpus_most: 2, price_usd: {p}, "
HOST += "ram_usd_per_gib: 5, power_w: 300"


@pytest.fixture
def catalogue(tmp_path):
    path = tmp_path / "mine.yaml"
    cards = [f"    - {{name: {name}, {CARD.format(v=v, s=s, p=p)}}}" for name, v, s, p in
             (("small", 8, 70, 100), ("plain", 16, 70, 700), ("dear", 16, 70, 9000))]  # fmt: skip
    hosts = [f"    - {{name: {name}, {HOST.format(c=c, p=p)}}}" for name, c, p in (("big", 96, 5000), ("weak", 4, 500))]
    path.write_text("catalogue:\n  cards:\n" + "\n".join(cards) + "\n  hosts:\n" + "\n".join(hosts) + "\n")
    return str(path)


def size(capsys, *arguments, code=0):
    assert main(["size", "--set", "workload.proofs=3", *arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_the_cheapest_that_makes_it(capsys, catalogue):
    document = size(capsys, "--target", "80 s/proof", "--catalogue", catalogue)
    first = document["machines"][0]
    assert (first["host"], first["card"], first["gpus"]) == ("big", "plain", 1)
    assert first["s_per_proof"] <= 80 and first["usd_per_proof"] > 0 and first["joule_per_proof"] > 0
    prices = [machine["usd"] for machine in document["machines"]]
    assert prices == sorted(prices) and "small" not in {m["card"] for m in document["machines"]}
    slower = size(capsys, "--target", "160 s/proof", "--catalogue", catalogue)["machines"][0]
    assert slower["ram_bytes"] < first["ram_bytes"] and slower["usd"] < first["usd"]
    gain = document["gain"]
    assert [row["gpus"] for row in gain] == [1, 2] and all(row["stops"] for row in gain)


def test_more_hosts_make_what_one_does_not(capsys, catalogue):
    assert size(capsys, "--target", "20 s/proof", "--catalogue", catalogue, code=3)["machines"] == []
    first = size(capsys, "--target", "20 s/proof", "--catalogue", catalogue, "--hosts", "3")["machines"][0]
    assert first["hosts"] in (2, 3) and first["s_per_proof"] <= 20


@pytest.mark.parametrize("text, seconds", [("40 s/proof", 40), ("100 proofs/h", 36), ("1.5min/proof", 90), ("1 proof/min", 60)])
def test_targets(text, seconds):
    assert seconds_a_proof(text) == seconds


@pytest.mark.parametrize("text", ["40", "40 s", "s/proof", "0 proofs/h", "-1 s/proof", "40 proofs/s/h", "1e9 s/proof"])
def test_what_is_no_target(text):
    with pytest.raises(InputError, match="--target"):
        seconds_a_proof(text)


def test_contradictory_targets_and_unknown_cards(capsys):
    assert one_target(["36 s/proof", "100 proofs/h"]) == 36
    assert main(["size", "--target", "40 s/proof", "--target", "100 proofs/h"]) == 2
    assert "contradictory targets" in capsys.readouterr().err
    assert main(["size", "--target", "40 s/proof", "--card", "RTX 4091"]) == 2
    assert "did you mean 'RTX 4090'" in capsys.readouterr().err
    assert main(["size"]) == 2
