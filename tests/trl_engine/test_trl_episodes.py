"""Episodes by TRL: those of the local engine, with its weights; and our environments as TRL's."""

import warnings

import pytest
import torch
from datasets import Dataset
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from rlcourse.errors import UserError
from rlcourse.policy import Policy
from rlcourse.tasks import CalculatorEnvironment
from rlcourse.training import load_recipe
from rlcourse.training import train as train_locally

trl = pytest.importorskip("trl", reason="the extra `trl` is not installed")

from rlcourse import trl_engine  # noqa: E402
from rlcourse.trl_engine.playing import OVER, ToolEnvironment  # noqa: E402


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """A policy that calls now and then: without any call, no episode has an observation."""
    recipe = load_recipe("calculator_sft", steps=12, eval_problems=0, device="cpu")
    place = tmp_path_factory.mktemp("shown") / "policy"
    train_locally(recipe, progress=False).policy.save(place)
    return place


def small(shown, **changes):
    settings = {"policy": str(shown), "warm_start": None, "steps": 2, "prompts_per_step": 2}
    settings |= {"group_size": 4, "eval_problems": 0, "checkpoint_every": 0, "device": "cpu"}
    return load_recipe("calculator_grpo", **(settings | changes))


def apart(one, other, start) -> float:
    """How far two policies are from each other, next to how far they are from `start`."""
    policies = (one, other, Policy.load(start, device="cpu"))
    a, b, c = (torch.cat([p.detach().flatten() for p in each.parameters()]) for each in policies)
    return ((a - b).norm() / (a - c).norm()).item()


def test_both_engines_play_the_same_episodes_and_learn_the_same(shown, tmp_path, monkeypatch):
    """Rewards of the two engines are equal by a rule that a beginner is paid by, too."""
    respond = CalculatorEnvironment.respond

    def by_length(self, text):
        reply = respond(self, text)
        return reply._replace(reward=len(text) % 3 / 2)

    monkeypatch.setattr(CalculatorEnvironment, "respond", by_length)
    recipe = small(shown)
    ours = train_locally(recipe, tmp_path / "local", progress=False)
    theirs = trl_engine.train(recipe, tmp_path / "trl", progress=False)
    assert apart(ours.policy, theirs.policy, shown) < 0.005  # 4e-4, of gradients that are rounding
    for mine, other in zip(ours.metrics, theirs.metrics, strict=True):
        assert mine["grad_norm"] > 0 and mine["turns"] > 1
        for name in ("reward/mean", "grad_norm", "tokens", "lr"):
            assert mine[name] == pytest.approx(other[name], rel=2e-3), name


def test_demonstrated_episodes_are_the_same_to_both_engines(shown, tmp_path):
    settings = {"policy": str(shown), "steps": 2, "prompts_per_step": 4, "eval_problems": 0}
    recipe = load_recipe("calculator_sft", device="cpu", **settings)
    ours = train_locally(recipe, tmp_path / "local", progress=False)
    theirs = trl_engine.train(recipe, tmp_path / "trl", progress=False)
    assert apart(ours.policy, theirs.policy, shown) < 0.005
    assert ours.metrics[0]["tokens"] == theirs.metrics[0]["tokens"]


@pytest.mark.parametrize(
    ("changes", "settings", "sentence"),
    [
        ({"algorithm": "rloo"}, (), "TRL's rloo plays no episodes"),
        ({}, ("use_vllm=true",), "leave out use_vllm"),
    ],
)
def test_what_plays_no_episodes_is_refused(shown, tmp_path, changes, settings, sentence):
    with pytest.raises(UserError, match=sentence):
        trl_engine.train(
            small(shown, **changes), tmp_path / "run", settings=settings, progress=False
        )
    assert not (tmp_path / "run" / "policy").exists()


# Our environments as TRL's own


def calls(environment, *texts):
    return [environment.step(text) for text in texts]


def test_a_tool_environment_is_reset_stepped_and_paid():
    environment = ToolEnvironment(CalculatorEnvironment)
    with pytest.raises(UserError, match="call reset"):
        environment.step("1 + 1")
    row = {"question": "How many?", "answer": "12 * 17 = 204\n#### 204", "other": "column"}
    assert environment.reset(**row) == "How many?"
    assert calls(environment, "12 * 17", "let me see") == ["204", "?"]
    assert environment.get_reward() == 0
    assert calls(environment, "#### 204", "#### 204", "1 + 1") == [OVER] * 3
    assert environment.get_reward() == 1
    environment.reset(**row)
    assert environment.get_reward() == 0 and calls(environment, "#### 7") == [OVER]
    assert environment.get_reward() == 0


def byte_tokenizer():
    letters = ["<pad>", "<|im_end|>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = Tokenizer(models.BPE(vocab={s: i for i, s in enumerate(letters)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<|im_end|>"
    )


def test_trl_trains_a_random_model_in_our_environment(tmp_path, monkeypatch):
    """TRL calls `step` as a tool where a completion asks for it, and pays what it has earned.

    A random model never asks, so its turns are replaced: half of the episodes call and answer.
    """
    warnings.simplefilter("ignore")
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    tokenizer = byte_tokenizer()
    place = next(p for p in trl.__path__)
    with open(f"{place}/chat_templates/qwen3.jinja", encoding="utf-8") as file:
        tokenizer.chat_template = file.read()
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1}
    sizes |= {"num_attention_heads": 2, "vocab_size": len(tokenizer)}
    model = LlamaForCausalLM(
        LlamaConfig(**sizes, pad_token_id=0, eos_token_id=1, bos_token_id=None)
    )
    said = '<tool_call>\n{"name": "step", "arguments": {"text": "%s"}}\n</tool_call>'
    eos = tokenizer.eos_token_id

    def written(self, prompt_ids, *unused, **also_unused):
        """Every second episode calls, reads the result, and answers with it."""
        rows = []
        for i, ids in enumerate(prompt_ids):
            _, *heard = tokenizer.decode(ids).split("<tool_response>\n")
            turn = said % ("#### 204" if heard else "12 * 17")
            silent = len(heard) == 2 or (i % 2 == 0 and not heard)
            rows.append([*tokenizer.encode("I do not know." if silent else turn), eos])
        return rows, None

    monkeypatch.setattr(trl.GRPOTrainer, "_generate_single_turn", written)
    row = {"prompt": [{"role": "user", "content": ""}]}
    row |= {"question": "How many?", "answer": "#### 204"}
    arguments = trl.GRPOConfig(
        output_dir=str(tmp_path),
        max_steps=2,
        per_device_train_batch_size=4,
        num_generations=4,
        max_completion_length=400,
        max_tool_calling_iterations=2,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        logging_steps=1,
        learning_rate=1e-3,
        disable_tqdm=True,
    )
    trainer = trl.GRPOTrainer(
        model=model,
        args=arguments,
        train_dataset=Dataset.from_list([row] * 8),
        processing_class=tokenizer,
        environment_factory=lambda: ToolEnvironment(CalculatorEnvironment),
    )
    before = [p.detach().clone() for p in model.parameters()]
    trainer.train()
    logs = [log for log in trainer.state.log_history if "reward" in log]
    assert [log["reward"] for log in logs] == [0.5, 0.5]
    assert [log["tools/call_frequency"] for log in logs] == [1.0, 1.0]  # two in half of them
    lengths = [len(tokenizer.encode(said % text)) + 1 for text in ("12 * 17", "#### 204")]
    lengths.append(len("I do not know.") + 1)
    wrote = (lengths[2] + sum(lengths)) / 2  # and not what the tool wrote
    assert logs[0]["completions/mean_length"] == pytest.approx(wrote)
    assert any((a != b).any() for a, b in zip(before, model.parameters(), strict=True))
    assert all(torch.isfinite(p).all() for p in model.parameters())
