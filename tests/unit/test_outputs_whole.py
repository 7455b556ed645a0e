"""Files and folders appear whole or not at all; devices, pipes and links are not replaced; leftovers are swept."""

import errno
import os
import signal
import stat
import subprocess
import sys
import threading

import pytest

from cuzk import outputs
from cuzk.errors import InputError
from cuzk.outputs import atomic_write, file_set, require_folder, require_writable, whole_directory, write_text

ROOT = os.geteuid() == 0


@pytest.fixture(autouse=True)
def _new_process(monkeypatch):
    monkeypatch.setattr(outputs, "_swept", set())


# INV-14
def test_a_file_appears_at_the_end_and_not_after_an_error(tmp_path):
    path = tmp_path / "f"
    with pytest.raises(ZeroDivisionError), atomic_write(path) as file:
        file.write(b"half")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
    with atomic_write(path) as file:
        file.write(b"whole")
        assert not path.exists()
    assert path.read_bytes() == b"whole" and [p.name for p in tmp_path.iterdir()] == ["f"]
    with pytest.raises(InputError, match="f: No space left"), atomic_write(path) as file:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert path.read_bytes() == b"whole" and len(list(tmp_path.iterdir())) == 1


def test_a_symbolic_link_stays_and_its_target_is_written(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    link.symlink_to("real")
    for text in ("new", "again"):
        write_text(link, text)
        assert link.is_symlink() and real.read_text() == text
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "real"]


def test_a_pipe_and_a_device_are_written_through(tmp_path):
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for name in (pipe, link):
        got = []
        reader = threading.Thread(target=lambda got=got: got.append(pipe.read_text()))
        reader.start()
        write_text(name, "through")
        reader.join(20)
        assert got == ["through"] and stat.S_ISFIFO(os.stat(pipe).st_mode)
    write_text("/dev/null", "nothing")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with pytest.raises(InputError, match="/dev/full: No space left"):
        write_text("/dev/full", "x" * 100_000)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "pipe"]


def test_a_block_device_and_a_socket_are_refused(tmp_path):
    import socket

    name = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(name)
        with pytest.raises(InputError, match="socket"):
            require_writable(name)
        with pytest.raises(InputError, match="socket"):
            write_text(name, "x")
    if ROOT:
        try:
            os.mknod(tmp_path / "block", stat.S_IFBLK | 0o600, os.makedev(7, 250))
        except OSError:
            return
        with pytest.raises(InputError, match="block device"):
            write_text(tmp_path / "block", "x")
        assert stat.S_ISBLK(os.stat(tmp_path / "block").st_mode)


@pytest.mark.parametrize("name", ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"))
def test_standard_output_in_a_file_keeps_what_was_there(tmp_path, name):
    """`>> log` must stay the file it is, and get the text at its end."""
    log = tmp_path / "log"
    log.write_text("before\n")
    body = f"from cuzk.outputs import write_text\nprint('first')\nwrite_text({name!r}, 'second\\n')\n"
    with open(log, "a") as file:
        subprocess.run([sys.executable, "-c", body], stdout=file, check=True)
    assert log.read_text() == "before\nfirst\nsecond\n" and len(list(tmp_path.iterdir())) == 1


KILLED = """
import os, signal
from cuzk.outputs import atomic_write, file_set
with {block} as made:
    {write}
    os.kill(os.getpid(), signal.{signal})
"""


@pytest.mark.parametrize("what", ("file", "new folder", "folder with files"))
def test_leftovers_of_a_killed_writer_are_swept_at_the_next_start(tmp_path, what):
    target = tmp_path / "out"
    names = ["a", "b"]
    if what == "folder with files":
        target.mkdir()
        (target / "a").write_text("old a")
        (target / "other").write_text("other")
    block = f"atomic_write({str(target)!r})" if what == "file" else f"file_set({str(target)!r}, 'a', 'b')"
    write = "made.write(b'half'); made.flush()" if what == "file" else "(made / 'a').write_text('half')"
    body = KILLED.format(block=block, write=write, signal="SIGKILL")
    done = subprocess.run([sys.executable, "-c", body], check=False)
    assert done.returncode == -signal.SIGKILL
    place = target if what == "folder with files" else tmp_path
    assert len(list(place.glob(".*.cuzk-part"))) == 1
    assert not target.exists() or (target / "a").read_text() == "old a"
    mine = tmp_path / ".mine.part"
    mine.write_text("of somebody else")
    if what == "file":
        write_text(target, "whole")
        assert target.read_text() == "whole"
    else:
        with file_set(target, *names) as stage:
            for name in names:
                (stage / name).write_text(name)
        assert [(target / name).read_text() for name in names] == names
    assert list(place.glob(".*.cuzk-part")) == [] and mine.exists()


def test_a_living_writer_is_not_swept(tmp_path):
    with atomic_write(tmp_path / "one") as one:
        outputs._swept.clear()
        write_text(tmp_path / "two", "2")
        one.write(b"1")
    with file_set(tmp_path / "three", "x") as stage:
        outputs._swept.clear()
        write_text(tmp_path / "four", "4")
        (stage / "x").write_text("3")
    assert (tmp_path / "one").read_text() == "1" and (tmp_path / "three" / "x").read_text() == "3"


# INV-14
def test_a_set_is_whole_or_absent_and_a_half_moved_one_is_finished(tmp_path, monkeypatch):
    folder = tmp_path / "out"
    with pytest.raises(InputError, match="out: No such file"), file_set(folder, "a", "b") as stage:
        (stage / "a").write_text("only a")  # b was never written
    assert list(tmp_path.iterdir()) == []
    folder.mkdir(mode=0o700)
    real, moved = os.replace, []

    def dies(source, target):
        if moved:
            raise KeyboardInterrupt
        moved.append(target)
        real(source, target)

    monkeypatch.setattr(os, "replace", dies)
    with pytest.raises(KeyboardInterrupt), file_set(folder, "a", "b") as stage:
        for name in "ab":
            (stage / name).write_text("new " + name)
    monkeypatch.setattr(os, "replace", real)
    outputs._swept.clear()
    outputs.sweep(folder)
    assert {p.name: p.read_text() for p in folder.iterdir()} == {"a": "new a", "b": "new b"}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_two_writers_of_one_folder_do_not_mix(tmp_path):
    """Many rounds from two processes: the files that lie there are always of one round."""
    body = (
        "import sys\n"
        "from cuzk.outputs import file_set\n"
        "for i in range(60):\n"
        "    with file_set(sys.argv[1], 'a', 'b', 'c') as stage:\n"
        "        for name in 'abc': (stage / name).write_text(f'{sys.argv[2]} {i}')\n"
    )
    folder = tmp_path / "out"
    writers = [subprocess.Popen([sys.executable, "-c", body, str(folder), who]) for who in ("x", "y")]
    assert [w.wait(60) for w in writers] == [0, 0]
    assert len({(folder / name).read_text() for name in "abc"}) == 1
    assert sorted(p.name for p in folder.iterdir()) == ["a", "b", "c"] and [p.name for p in tmp_path.iterdir()] == ["out"]


def test_what_is_no_folder_for_a_set_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a").symlink_to("/dev/null")
    for place in ("file", "folder"):
        with pytest.raises(InputError):
            require_folder(tmp_path / place, "a")
    with pytest.raises(InputError, match="/dev/null: is not a directory"):
        require_folder("/dev/null", "a")
    with pytest.raises(InputError, match="exists already"), whole_directory(tmp_path / "folder"):
        pass
    assert (tmp_path / "folder" / "a").is_symlink()
