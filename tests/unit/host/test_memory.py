"""What may still be taken of a machine, from the files that Linux shows: made-up trees of both versions of control groups."""

from pathlib import Path

import pytest

from cuzk.host.memory import available_bytes, control_groups, memory, memory_limit_bytes

GIB = 1 << 30


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def host(total_gib: int, available_gib: int, **more: str) -> dict[str, str]:
    kib = GIB >> 10
    return {
        "proc/meminfo": f"MemTotal: {total_gib * kib} kB\nMemFree: {kib} kB\nMemAvailable: {available_gib * kib} kB\n",
        **more,
    }


def group_v2(place: str, limit_gib: int | str, usage_gib: float, *, inactive_gib=0.0, active_gib=0.0, shmem_gib=0.0):
    limit = limit_gib if isinstance(limit_gib, str) else str(limit_gib * GIB)
    stat = {"anon": GIB, "file": int((inactive_gib + active_gib + shmem_gib) * GIB), "shmem": int(shmem_gib * GIB),
            "inactive_file": int(inactive_gib * GIB), "active_file": int(active_gib * GIB), "slab_reclaimable": 0}  # fmt: skip
    return {
        f"{place}/memory.max": f"{limit}\n",
        f"{place}/memory.current": f"{int(usage_gib * GIB)}\n",
        f"{place}/memory.stat": "".join(f"{name} {value}\n" for name, value in stat.items()),
    }


def test_page_cache_of_a_container_counts_as_free(tmp_path):
    root = tree(tmp_path, host(256, 200) | {"proc/self/cgroup": "0::/\n"}
                | group_v2("sys/fs/cgroup", 70, 70, inactive_gib=60, active_gib=8))  # fmt: skip
    assert memory_limit_bytes(root) == 70 * GIB
    assert available_bytes(root) == 68 * GIB


def test_shared_memory_is_no_cache(tmp_path):
    root = tree(tmp_path, host(256, 200) | {"proc/self/cgroup": "0::/\n"}
                | group_v2("sys/fs/cgroup", 70, 68, inactive_gib=1, shmem_gib=60))  # fmt: skip
    assert available_bytes(root) == 3 * GIB


def test_the_tightest_group_above_the_process_counts(tmp_path):
    root = tree(tmp_path, host(64, 60) | {"proc/self/cgroup": "0::/a.slice/b.service\n"}
                | group_v2("sys/fs/cgroup/a.slice/b.service", "max", 1)
                | group_v2("sys/fs/cgroup/a.slice", 10, 4))  # fmt: skip
    assert [group.limit_bytes for group in control_groups(root)] == [10 * GIB]
    assert available_bytes(root) == 6 * GIB


def test_version_1(tmp_path):
    place = "sys/fs/cgroup/memory/docker/x"
    root = tree(tmp_path, host(64, 60) | {
        "proc/self/cgroup": "5:cpu:/docker/x\n4:memory:/docker/x\n0::/\n",
        f"{place}/memory.limit_in_bytes": str(8 * GIB), f"{place}/memory.usage_in_bytes": str(7 * GIB),
        f"{place}/memory.stat": f"cache {5 * GIB}\ntotal_inactive_file {4 * GIB}\ntotal_active_file {GIB}\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": str((1 << 63) - 4096),
        "sys/fs/cgroup/memory/memory.usage_in_bytes": str(20 * GIB),
    })  # fmt: skip
    assert available_bytes(root) == 6 * GIB


def test_huge_pages_and_no_limits(tmp_path):
    root = tree(tmp_path, host(64, 20) | {"sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages": "36\n",
                                         "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "512\n"})  # fmt: skip
    found = memory(root)
    assert found.hugepages_bytes == 37 * GIB and found.total_bytes == 64 * GIB
    assert memory_limit_bytes(root) is None and available_bytes(root) == 20 * GIB


@pytest.mark.parametrize("text", ["", "abc\n", "0::\n", "::::\n", "0::/../../x\n"])
def test_odd_lists_of_groups_are_no_fault(tmp_path, text):
    root = tree(tmp_path, host(8, 5) | {"proc/self/cgroup": text})
    assert control_groups(root) == [] and available_bytes(root) == 5 * GIB
