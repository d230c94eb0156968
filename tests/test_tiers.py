"""The quick tier stays quick: a test that takes long without the marker is listed, or fails."""

import pytest
import tiers

pytest_plugins = ["pytester"]

TESTS = """
    import os, subprocess, sys, pytest

    WORK = "import os\\nwhile sum(os.times()[:2]) < 0.4: pass"

    def test_short(): pass
    def test_long(): subprocess.run([sys.executable, "-c", WORK], check=True)
    @pytest.mark.slow
    def test_marked(): subprocess.run([sys.executable, "-c", WORK], check=True)
    @pytest.mark.weekly
    def test_of_a_week(): pass
    @pytest.fixture
    def costly(): subprocess.run([sys.executable, "-c", WORK], check=True)
    def test_with_a_costly_fixture(costly): pass
    @pytest.fixture(scope="session")
    def shared():
        yield
        subprocess.run([sys.executable, "-c", WORK], check=True)
    def test_whose_end_is_the_session_s(shared): pass
"""


@pytest.fixture
def run(pytester, monkeypatch):
    monkeypatch.setattr(tiers, "WANTED", 0.2)
    monkeypatch.setattr(tiers, "LIMIT", 0.3)
    pytester.makepyfile(TESTS)
    pytester.makeini("[pytest]\nmarkers =\n  slow: takes long\n  weekly: takes longer")

    def run(*options):
        return pytester.runpytest("-p", "tiers", "-p", "no:cacheprovider", *options)

    return run


def test_a_long_test_without_the_marker_fails(run, monkeypatch):
    monkeypatch.setattr(tiers, "pace", lambda: tiers.PACE)
    found = run("--hold-tiers")
    found.assert_outcomes(passed=5, errors=2, deselected=1)
    found.stdout.fnmatch_lines(["*::test_long took * or mark it @pytest.mark.slow*"])
    found.stdout.fnmatch_lines(["*::test_with_a_costly_fixture took * with its fixtures*"])
    found.stdout.fnmatch_lines(["the longest that are marked:", "*s  *::test_marked"])


@pytest.mark.slow
def test_unless_it_is_asked_for_nothing_is_held_and_nothing_weekly_run(run):
    run().assert_outcomes(passed=5, deselected=1)
    run("--weekly").assert_outcomes(passed=6)
    run("--weekly", "-m", "weekly").assert_outcomes(passed=1, deselected=5)
