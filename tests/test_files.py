"""The one atomic write: all or nothing, byte for byte, and a sentence where it cannot be done."""

import ast
import errno
import os
import stat
from pathlib import Path

import pytest

from rlcourse import files
from rlcourse.errors import UserError
from rlcourse.files import TEMPORARY, replace_bytes, write_json, write_text

PACKAGE = Path(files.__file__).parent


def test_what_is_written_is_written_byte_for_byte(tmp_path):
    path = tmp_path / "a.txt"
    for content in (b"", b"one\r\ntwo\n\x00\xff", b"x" * 1_000_000):
        replace_bytes(path, content)
        assert path.read_bytes() == content
    write_text(path, "α\r\nβ\n")
    assert path.read_bytes() == "α\r\nβ\n".encode()
    write_json(path, {"mean": "µ"}, indent=None)
    assert path.read_bytes() == '{"mean": "µ"}\n'.encode()
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path, monkeypatch, step, failure
):
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")

    def fail(*_):
        raise failure

    monkeypatch.setattr(files.os, step, fail)
    with pytest.raises(type(failure)):
        replace_bytes(path, b"new")
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["a.txt"]


def test_what_a_kill_leaves_is_recognized_and_in_nobody_s_way(tmp_path, monkeypatch):
    """A kill ends the process between the two files; nothing is cleaned up."""
    path = tmp_path / "a.txt"
    with monkeypatch.context() as patch:
        patch.setattr(files.os, "replace", lambda *_: None)
        replace_bytes(path, b"half")
    assert [name.startswith(TEMPORARY) for name in os.listdir(tmp_path)] == [True]
    replace_bytes(path, b"whole")
    assert path.read_bytes() == b"whole"


@pytest.mark.skipif(os.name != "posix", reason="POSIX permissions")
def test_a_file_is_as_readable_as_any_other_new_one(tmp_path):
    (tmp_path / "plain").touch()
    replace_bytes(tmp_path / "ours", b"")
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "ours")}
    assert len(modes) == 1


def test_text_that_cannot_be_written_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match="folder could not be written"):
        write_text(tmp_path / "folder", "text")
    with pytest.raises(UserError, match=r"a\.txt could not be written"):
        write_text(tmp_path / "nowhere" / "a.txt", "text")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(UserError, match="the disk is full"):
        write_text(tmp_path / "a.txt", "text")


def test_nobody_else_replaces_files_by_hand():
    """``os.replace`` is used in ``files`` alone."""
    found = [
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "os.replace"
    ]
    assert set(found) == {"files.py"}
