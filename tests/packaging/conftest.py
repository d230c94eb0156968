"""The archives, built once for all tests of this folder."""

import shutil
import tarfile

import pytest
from building import ROOT, SOURCES, built
from shared import made_once


@pytest.fixture(scope="session")
def archives(tmp_path_factory):
    """(sdist, wheel); the wheel is built from what the sdist holds."""
    root = made_once(tmp_path_factory, "archives", build)
    return tuple(next(root.glob(kind)) for kind in ("*.tar.gz", "*.whl"))


def build(root):
    for name in SOURCES:
        source, ignored = ROOT / name, shutil.ignore_patterns("__pycache__", "submitted", "source")
        if source.is_dir():
            shutil.copytree(source, root / "tree" / name, ignore=ignored)
        else:
            (root / "tree").mkdir(exist_ok=True)
            shutil.copy(source, root / "tree")
    sdist = built("sdist", root / "tree", root)
    with tarfile.open(sdist) as archive:
        archive.extractall(root / "unpacked", filter="data")
    (unpacked,) = (root / "unpacked").iterdir()
    built("wheel", unpacked, root)
