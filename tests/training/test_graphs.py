"""Where the memory does not hold a CUDA graph, an evaluation goes on with less."""

import pytest
import torch
from simulated_graph import SimulatedGraph, simulated_capture

from rlcourse.evaluation import evaluate_policy
from rlcourse.policy import static_decoding


@pytest.fixture
def small_card(monkeypatch):
    """Graphs are simulated, and there is memory for those of so many rows at most."""
    tried = []

    def with_room_for(rows):
        def captured(advance, generator):
            decoder = advance.__self__
            tried.append(len(decoder.token))
            if len(decoder.token) > rows:
                raise static_decoding.NoMemoryForGraph("CUDA out of memory")
            return captured_at_last(advance, generator)

        captured_at_last = static_decoding.captured
        monkeypatch.setattr(static_decoding, "GRAPHS_ON", ("cpu",))
        monkeypatch.setattr(static_decoding, "captured", captured)
        monkeypatch.setattr(torch.cuda, "CUDAGraph", SimulatedGraph)
        monkeypatch.setattr(torch.cuda, "graph", simulated_capture)
        return tried

    return with_room_for


def test_evaluation_halves_its_rows(small_card, policy, task, capsys):
    tried = small_card(rows=12)
    policy.static_cache = True
    found = evaluate_policy(policy, task.evaluation, 4, max_tokens=8, batch=40)
    assert max(tried) == 40 and 10 in tried
    assert found.problems == len(task.evaluation)
    assert (
        "out of memory with 40 completions at once; continuing with 20" in capsys.readouterr().err
    )
