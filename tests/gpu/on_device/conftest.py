"""The process of these tests has a pretended GPU; see ../test_on_a_gpu.py, which starts it."""

import pretended_gpu
import pytest

pretended_gpu.install()


@pytest.fixture(autouse=True)
def roomy():
    """As much memory as before, whatever a test has said."""
    yield
    pretended_gpu.set_capacity(141e9)
