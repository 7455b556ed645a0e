"""The machine that is found, as the model's machine: limits, huge pages, cores, GPUs and their holders."""

import pytest

from cuzk.cli.main import main
from cuzk.host.cpu import Cpu, NumaNode, cpu
from cuzk.host.gpus import parsed
from cuzk.host.machine import Found, machine_of
from cuzk.host.memory import ControlGroup, Memory
from cuzk.model.dump import part_text
from cuzk.model.machine import Machine
from cuzk.model.scenario import load_part

from .test_memory import tree

GIB = 1 << 30
CPU = Cpu("a CPU", 8, 16, None, (NumaNode(0, 8, 32 * GIB), NumaNode(1, 8, 32 * GIB)))
LINE = ["0", "GPU-ab-cd", "NVIDIA GeForce RTX 4090", "24564", "3584", "580.1", "8.9", "4", "16", "3105", "450.00"]


def found(**changes) -> Found:
    base = {"memory": Memory(64 * GIB, 40 * GIB, 0, 0), "groups": [], "cpu": CPU, "gpus": []}
    return Found(**(base | changes))


def test_a_container_with_a_full_cache_has_its_limit_less_what_is_held():
    group = ControlGroup("/sys/fs/cgroup", 48 * GIB, 47 * GIB, 40 * GIB)
    machine = machine_of(found(memory=Memory(256 * GIB, 200 * GIB, 0, 0), groups=[group]))
    assert machine.usable_ram == 41 * GIB
    assert "page cache" in machine.provenance["cgroup_limit"]


def test_huge_pages_are_taken_from_what_can_be_had():
    machine = machine_of(found(memory=Memory(64 * GIB, 20 * GIB, 36 * GIB, 0)))
    assert machine.hugepages == 36 * GIB and machine.reserved == 8 * GIB and machine.usable_ram == 20 * GIB


def test_the_holder_of_a_gpu_is_named_and_its_memory_reserved():
    apps = [["GPU-ab-cd", "4711", "/usr/bin/other, with a comma", "3500"], ["GPU-zz", "1", "elsewhere", "9"]]
    gpu = parsed(LINE, apps, {"abcd": {"sms": 128, "memory_clock_khz": 10_501_000, "bus_bits": 384}})
    machine = machine_of(found(gpus=[gpu]))
    card = machine.gpus[0]
    assert (card.sms, card.reserved) == (128, 3584 << 20)
    assert card.memory_bandwidth == pytest.approx(1.008e12, rel=0.01) and card.pcie_h2d == pytest.approx(25e9, rel=0.02)
    assert "4711" in machine.provenance["gpus.0"] and "elsewhere" not in machine.provenance["gpus.0"]


def test_what_the_driver_does_not_tell_comes_from_the_catalogue_or_is_said_to_be_unknown():
    no_link = [*LINE[:7], "[N/A]", "[N/A]", "[N/A]", "[N/A]"]
    card = machine_of(found(gpus=[parsed(no_link, [], {})]))
    assert card.gpus[0].sms == 128 and "multiprocessors of the catalogue" in card.provenance["gpus.0"]
    unknown = machine_of(found(gpus=[parsed([*no_link[:2], "Mystery 9000", *no_link[3:]], [], {})]))
    assert "multiprocessors not known" in unknown.provenance["gpus.0"] and unknown.gpus[0].imad is None


def test_cores_within_affinity_and_quota(tmp_path):
    files = {f"sys/devices/system/cpu/cpu{t}/topology/core_id": str(t % 4) for t in range(8)}
    files |= {f"sys/devices/system/cpu/cpu{t}/topology/physical_package_id": "0" for t in range(8)}
    files |= {"sys/fs/cgroup/cpu.max": "300000 100000\n", "sys/devices/system/node/node0/cpulist": "0-3,5\n",
              "sys/devices/system/node/node0/meminfo": "Node 0 MemTotal: 1024 kB\n"}  # fmt: skip
    root = tree(tmp_path, files)
    here = cpu(root, set(range(8)))
    assert (here.cores, here.threads, here.smt, here.quota, here.cores_usable) == (4, 8, 2, 3.0, 2)
    assert here.nodes == (NumaNode(0, 5, 1 << 20),)
    assert cpu(root, {0, 1}).cores == 2


def test_the_emitted_file_is_read_back_equal(tmp_path):
    group = ControlGroup("/sys/fs/cgroup", 48 * GIB, 47 * GIB, 40 * GIB)
    machine = machine_of(found(groups=[group], gpus=[parsed(LINE, [], {})], dram_bytes_per_s=123_456_789_012.3))
    path = tmp_path / "here.yaml"
    path.write_text(part_text("machine", machine))
    assert load_part(path, "machine", Machine) == machine


def test_doctor_emits_a_machine_of_this_host(tmp_path, capsys):
    path = tmp_path / "here.yaml"
    assert main(["doctor", "--emit", "machine", "--name", "here", "-o", str(path)]) == 0
    machine = load_part(path, "machine", Machine)
    assert machine.name == "here" and 0 < machine.usable_ram <= machine.ram and machine.cores >= 1
    assert main(["doctor", "-o", str(path)]) == 2
    assert main(["doctor", "--emit", "machine", "-o", str(tmp_path / "no" / "x.yaml")]) == 2
