"""What real models bring into training: adapters, templates with arguments, an opened thought."""

import pytest
import torch
from transformers import AutoTokenizer

from rlcourse.policy import Policy
from rlcourse.policy.lora import adapted_layers, add_adapters
from rlcourse.tasks import load_task
from rlcourse.tasks.rewards import format_reward
from rlcourse.training import load_recipe, train
from rlcourse.training.data.scoring import score

STEPS = {"warm_start": None, "steps": 2, "prompts_per_step": 2, "group_size": 2, "max_tokens": 8}
SHORT = load_recipe("grpo", **STEPS, eval_problems=0, checkpoint_every=0)


@pytest.fixture(scope="module")
def adapter(tmp_path_factory):
    """The directory of an adapter of the embedded model that changes what it says."""
    peft = pytest.importorskip("peft")
    place = tmp_path_factory.mktemp("adapter")
    base = Policy.load("tiny")
    base.save(place / "base")
    config = peft.LoraConfig(r=2, target_modules="all-linear", task_type="CAUSAL_LM")
    model = peft.get_peft_model(base.model, config)
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.02)
    model.peft_config["default"].base_model_name_or_path = "base"
    model.save_pretrained(place / "adapter")
    return place / "adapter"


def letters(completions):
    return torch.tensor([float(sum(map(ord, text))) for text in completions])


def change(before: Policy, after: Policy) -> list[int]:
    """The ranks of what training changed in each matrix, largest first."""
    pairs = zip(before.model.parameters(), after.model.parameters(), strict=True)
    ranks = [int(torch.linalg.matrix_rank(b - a, rtol=1e-3)) for a, b in pairs if a.ndim == 2]
    return sorted(ranks, reverse=True)


@pytest.mark.slow
def test_an_adapter_is_trained_on_or_merged_first(adapter, tmp_path):
    recipe = SHORT.but(policy=str(adapter), beta=0.1)
    start = Policy.load(adapter)
    for merged in (False, True):
        how = recipe.but(merge_adapter=merged)
        run = train(how, tmp_path / str(merged), reward=letters, progress=False)
        first, *_ = run.metrics
        assert first["kl"] == pytest.approx(0, abs=1e-5)  # it is the adapted model
        ranks = change(start, run.policy)
        assert ranks[0] > (4 if merged else 0)
        assert merged or ranks[0] <= 4  # a product of 2 and one of 2 more
        assert not adapted_layers(run.policy.model)


def test_a_thought_that_the_template_opens_counts_for_the_form():
    policy = Policy.load("tiny")
    rewards = {"correctness": 1.0, "format": 1.0, "length": 0.0}
    recipe = SHORT.but(rewards=rewards, template={"thinking": True})
    tokenizer = AutoTokenizer.from_pretrained(policy.tokenizer.name_or_path)
    tokenizer.chat_template += "{% if thinking %}<think>{% endif %}"
    task = load_task("word_problems", evaluation_size=1)
    policy.tokenizer = tokenizer
    problems = list(task.train[:1])
    earned = []
    for arguments in ({}, {"thinking": True}):
        policy.template = arguments
        rollouts = policy.sample([policy.format_prompt(problems[0].question)], max_tokens=4)
        text = policy.decode(rollouts)[0]
        _, parts = score(policy, rollouts, problems, recipe, task)
        begun = "<think>" * bool(arguments)
        assert parts["format"].tolist() == format_reward([begun + text]).tolist()
        earned.append(float(parts["format"][0]))
    assert earned[1] > earned[0]


def test_adapters_start_anew_on_a_model(adapter):
    policy = add_adapters(Policy.load(adapter), rank=2, alpha=4)
    assert adapted_layers(policy.model)
