"""What holds for every test: one thread, Ctrl-C heard, a policy that trains in milliseconds.

One thread here and in the processes that tests start: the tensors of the tests are small; several
threads only wait for each other, and on a busy machine that took twenty times the work.
"""

import os
import signal
import sys

import pytest

pytest_plugins = ["tiers"]
os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch is first imported
# A shell starts what runs in the background deaf to Ctrl-C, which tests press.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    parser.addoption(
        "--perturbed",
        type=int,
        metavar="SEED",
        help="add noise to weights and shift every seed, see tests/perturbation.py",
    )
    parser.addoption(
        "--every-page", action="store_true", help="look at every page of the site, not at two"
    )
    parser.addoption(
        "--hub", action="store_true", help="start a JupyterHub with users of its own, as root"
    )
    parser.addoption(
        "--images", action="store_true", help="build images where docker or podman answers"
    )
    parser.addoption(
        "--seeds", type=int, default=1, metavar="N", help="prove every exercise on N seeds"
    )


def pytest_configure(config):
    if (seed := config.getoption("--perturbed")) is not None:
        # A conftest.py in a directory that pytest is given is imported before this.
        assert "torch" not in sys.modules, "imported by a conftest.py, and too late to perturb"
        os.environ["RLCOURSE_TESTS_PERTURBED"] = str(seed)
        import perturbation  # noqa: F401  (perturbs on import)


@pytest.fixture(scope="session")
def seeds(request):
    """What the proof of the checks draws its cases with: one seed, or as many as --seeds says."""
    return range(request.config.getoption("--seeds"))


@pytest.fixture(scope="session")
def warm_start(tmp_path_factory):
    """The embedded model after the imitation that every recipe starts from, trained once."""
    from shared import made_once

    from rlcourse.policy import Policy
    from rlcourse.training import load_recipe, train

    def make(folder):
        recipe = load_recipe("sft", device="cpu", eval_problems=0)
        train(recipe, progress=False).policy.save(folder)

    return Policy.load(made_once(tmp_path_factory, "warm-start", make), device="cpu")


@pytest.fixture
def policy():
    """See ``echo.echo_policy``; imported here, so that tests without torch need not wait for it."""
    from echo import echo_policy

    return echo_policy()


@pytest.fixture
def task():
    from echo import echo_task

    return echo_task()


@pytest.fixture
def recipe():
    from echo import echo_recipe

    return echo_recipe
