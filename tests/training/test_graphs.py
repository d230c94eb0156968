"""Where the memory does not hold a CUDA graph, a run goes on with less."""

import pytest
import torch
from echo import quiet, weights
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


def test_training_goes_on_without_a_graph(small_card, policy, task, recipe, capsys):
    settings = recipe(steps=3, static_cache=True, eval_problems=0)
    plain = quiet(settings, policy=policy, task=task)
    tried = small_card(rows=2)
    run = quiet(settings, policy=policy, task=task)
    assert tried == [20]  # once, in the first step
    said = capsys.readouterr().err
    assert said.count("sampling continues without one (static_cache=false starts there)") == 1
    same = quiet(settings.but(static_cache=False), policy=policy, task=task)
    assert torch.equal(weights(run.policy), weights(same.policy))
    assert len(plain.metrics) == 3
