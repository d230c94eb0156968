"""User numbers that /etc/subuid lends: read as newuidmap reads them, and used only where whole."""

import os
import pwd

import pytest

from rlcourse.grading.confinement import subuid

ME = str(os.getuid())


@pytest.mark.parametrize(
    "text, found",
    [
        (f"{ME}:100000:65536\n", (100000, 65536)),
        (f"somebody-else:1:2\n{pwd.getpwuid(os.getuid()).pw_name}:300000:10\n", (300000, 10)),
        ("somebody-else:100000:65536\n", None),
        (f"{ME}:100000:0\n{ME}:-1:5\n{ME}:x:5\n{ME}:1\n{ME}\n\n:::\n", None),
        ("", None),
    ],
)
def test_only_whole_lines_of_ones_own_lend_numbers(tmp_path, text, found):
    (tmp_path / "subuid").write_text(text)
    assert subuid._lent(str(tmp_path / "subuid")) == found


@pytest.mark.skipif(not os.path.exists("/bin/sh"), reason="newuidmap is Linux's")
@pytest.mark.parametrize("program, count", [("true", 7), ("false", 0)])
def test_numbers_count_once_both_programs_have_mapped_them(monkeypatch, tmp_path, program, count):
    for name in ("newuidmap", "newgidmap"):
        (tmp_path / name).symlink_to(f"/bin/{program}")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(subuid, "_lent", lambda file: (100000, 7))
    assert subuid.mapped(subuid.waiting()) == count
