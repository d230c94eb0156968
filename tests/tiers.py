"""The tiers of tests: quick ones, those marked slow, and those marked weekly.

``make test`` runs the quick ones, ``make test-all`` the slow ones, too: what a change has to pass.
``make test-weekly`` runs what takes long and seldom breaks: claims of lessons, tried by training,
whole lessons on a pretended GPU and in a browser, and most exercises in what takes seconds for each
(`one_in` of shared.py). Without ``--weekly`` those are left out.

With ``--hold-tiers``, as both say, the tests without the marker that took more than WANTED seconds
of processor time are listed, set-up and started processes included, so that the quick tier stays
one that people run. One fails only from LIMIT on: processor time depends on the machine, too, and
on what else it does, and a change must not be refused for that.
"""

import os
import time

import pytest

WANTED = 3.0  # seconds that a test without the marker may take unremarked
# Seconds on the machine below. Far above WANTED: a test of 13 s took 33 on a machine where a fixed
# piece of work took no longer, since reading files and starting processes did.
LIMIT = 90.0
PACE = 0.11  # seconds that `pace` takes on the machine that LIMIT was set on
STARTED = pytest.StashKey[float]()
JUDGED = pytest.StashKey[str]()  # after which phase


def pytest_addoption(parser):
    parser.addoption(
        "--hold-tiers",
        action="store_true",
        help="fail tests that take long and are not marked slow, and list what takes longest",
    )
    parser.addoption("--weekly", action="store_true", help="run the tests marked weekly, too")


def pytest_configure(config):
    if config.getoption("--hold-tiers"):
        config.pluginmanager.register(Tiers(), "held tiers")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--weekly"):
        left_out = [item for item in items if item.get_closest_marker("weekly")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("weekly")]


def processor_time() -> float:
    """Seconds, of this process and of those that it has started and that have ended."""
    return sum(os.times()[:4])


def pace() -> float:
    """Seconds that a fixed piece of work takes here and now."""

    def once():
        started = time.process_time()
        sum(i * i for i in range(2_000_000))
        return time.process_time() - started

    return min(once() for _ in range(3))


def excuse_of_this_machine() -> float:
    """By how much this machine is slower than the one that LIMIT was set on, at least 1."""
    return max(1.0, pace() / PACE)


class Tiers:
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item, nextitem):
        item.stash[STARTED] = processor_time()
        # What the session shares is torn down after the last test, and is not that test's work.
        item.stash[JUDGED] = "teardown" if nextitem else "call"
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = yield
        if call.when == item.stash[JUDGED]:
            report.slow = any(map(item.get_closest_marker, ("slow", "weekly")))
            report.processor_time = took = processor_time() - item.stash[STARTED]
            if report.passed and not report.slow and took > LIMIT:
                limit = LIMIT * excuse_of_this_machine()
                if took > limit:
                    report.outcome = "failed"
                    report.longrepr = (
                        f"{item.nodeid} took {took:.0f} s of processor time with its fixtures, and "
                        f"tests without a marker may take {limit:.0f} s here: make it cheaper, or "
                        "mark it @pytest.mark.slow, which leaves it to `make test-all`."
                    )
        return report

    def pytest_terminal_summary(self, terminalreporter):
        reports = [
            report
            for kind in terminalreporter.stats.values()
            for report in kind
            if hasattr(report, "processor_time")
        ]
        quick, slow = (
            sum(report.processor_time for report in reports if report.slow is wanted)
            for wanted in (False, True)
        )
        terminalreporter.section("processor time")
        terminalreporter.write_line(f"{quick:8.1f} s  all tests without a marker")
        terminalreporter.write_line(f"{slow:8.1f} s  all tests marked slow or weekly")
        longest = sorted(reports, key=lambda report: -report.processor_time)
        unmarked = [r for r in longest if not r.slow and r.processor_time > WANTED]
        for heading, listed in (
            (f"without a marker, and longer than {WANTED:g} s", unmarked),
            ("the longest that are marked", [report for report in longest if report.slow][:10]),
        ):
            if listed:
                terminalreporter.write_line(f"{heading}:")
            for report in listed:
                terminalreporter.write_line(f"{report.processor_time:8.1f} s  {report.nodeid}")
