"""The process of these tests has a pretended GPU; see ../test_on_a_gpu.py, which starts it.

With RLCOURSE_REAL_GPU=1 they run on this machine's own, but for those that only the pretended one
can answer (CONTRIBUTING.md has the command).
"""

import os
import sys

import pytest

REAL = bool(os.environ.get("RLCOURSE_REAL_GPU"))
collect_ignore = []
if REAL:
    import real_gpu as pretended_gpu

    sys.modules["pretended_gpu"] = pretended_gpu
    collect_ignore.append("test_gpu_budgets.py")
else:
    import pretended_gpu
pretended_gpu.install()


def pytest_collection_modifyitems(items):
    """Leave out what a real GPU cannot answer."""
    if REAL:
        for item in items:
            if item.get_closest_marker("pretended"):
                item.add_marker(pytest.mark.skip(reason="needs the pretended GPU"))


@pytest.fixture(autouse=True)
def roomy():
    """As much memory as before, whatever a test has said."""
    yield
    if not REAL:
        pretended_gpu.set_capacity(141e9)
