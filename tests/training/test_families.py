"""Models of many families: what is sampled, scored and learned from is what each row alone gives.

The truth is a forward pass of one row without padding and without a cache. Everything of ours pads,
caches, or reads a prompt once for its group.
"""

import pytest
import torch
from transformers import CONFIG_MAPPING, AutoModelForCausalLM

from rlcourse.errors import UserError
from rlcourse.policy import Policy
from rlcourse.training.networks.forward import keeps_only_keys_and_values, shared_prompt_logprobs

PROMPTS = ["1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17", "1 2 3", "4 5 6 7 8 9"]
SIZES = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 256,
    "initializer_range": 0.3,
}
YARN = {"factor": 4.0, "original_max_position_embeddings": 32, "rope_theta": 10000.0}
LLAMA3 = YARN | {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 48}
LINEAR = {f"linear_{part}_head_dim": 16 for part in ("key", "value")} | {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "layer_types": ["linear_attention", "full_attention"] * 2,
}
STATES = {"mamba_n_heads": 4, "mamba_d_state": 16}
ATTENTION = {
    "qwen2, tied": ("qwen2", {"tie_word_embeddings": True}),
    "qwen2, window": (
        "qwen2",
        {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 2},
    ),
    "llama, llama3": ("llama", {"rope_parameters": LLAMA3 | {"rope_type": "llama3"}}),
    "llama, yarn": ("llama", {"rope_parameters": YARN | {"rope_type": "yarn"}}),
    "mistral": ("mistral", {"sliding_window": None}),
    "mistral, window": ("mistral", {"sliding_window": 8}),
    "qwen3": ("qwen3", {}),
    "qwen3_moe": ("qwen3_moe", EXPERTS),
    "smollm3": ("smollm3", {"no_rope_layers": [1, 1, 1, 0], "no_rope_layer_interval": 4}),
    "gemma2": ("gemma2", {"sliding_window": 8, "query_pre_attn_scalar": 16}),
    "gemma3_text": ("gemma3_text", {"sliding_window": 8, "query_pre_attn_scalar": 16}),
    "phi3": ("phi3", {"sliding_window": None}),
    "granite": ("granite", {"attention_multiplier": 0.1, "logits_scaling": 4.0}),
    "cohere2": ("cohere2", {"sliding_window": 8, "logit_scale": 0.3}),
    "olmo2": ("olmo2", {}),
    "gpt_oss": (
        "gpt_oss",
        {"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 8},
    ),
}
OTHER_STATES = {
    "qwen3_5_text": ("qwen3_5_text", LINEAR),
    "qwen3_next": ("qwen3_next", LINEAR | EXPERTS | {"shared_expert_intermediate_size": 48}),
    "falcon_h1": ("falcon_h1", STATES | {"mamba_d_ssm": 64, "mamba_d_head": 16}),
    "lfm2": ("lfm2", {"layer_types": ["conv", "full_attention"] * 2}),
    "granitemoehybrid": (
        "granitemoehybrid",
        STATES
        | {"mamba_d_head": 32, "layer_types": ["mamba", "attention"] * 2}
        | {"num_local_experts": 0, "num_experts_per_tok": 0, "shared_intermediate_size": 64},
    ),
}


def random_policy(kind: str, changes: dict) -> Policy:
    """A random model of that kind, which never ends a completion."""
    tokenizer = Policy.load("tiny", device="cpu").tokenizer
    special = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id}
    config = CONFIG_MAPPING[kind](
        **SIZES | special | {"vocab_size": len(tokenizer), "bos_token_id": None} | changes
    )
    torch.manual_seed(0)
    policy = Policy(AutoModelForCausalLM.from_config(config).float().eval(), tokenizer)
    policy.eos_ids = ()
    return policy


@torch.no_grad()
def row_by_row(policy, rollouts):
    """Log-probs (N, T) of each completion by a forward pass of its own."""
    logprobs = torch.zeros_like(rollouts.old_logprobs)
    for i in range(len(rollouts)):
        prompt = rollouts.prompt_tokens[i][rollouts.prompt_mask[i]]
        ids = torch.cat([prompt, rollouts.tokens[i]])[None]
        logits = policy.model(input_ids=ids, use_cache=False).logits[0].float()
        chosen = logits.log_softmax(-1)[:-1].gather(1, ids[0, 1:, None])[:, 0]
        logprobs[i] = chosen[len(prompt) - 1 :]
    return logprobs


def gradient(policy, logprobs):
    policy.zero_grad()
    logprobs.sum().backward()
    # Some parts of some models have no gradient, such as experts that no token chose.
    return torch.cat([p.grad.flatten() for p in policy.parameters() if p.grad is not None])


@pytest.mark.slow
@pytest.mark.parametrize("family", [*ATTENTION, *OTHER_STATES])
def test_samples_scores_and_gradients_are_those_of_each_row_alone(family):
    policy = random_policy(*(ATTENTION | OTHER_STATES)[family])
    assert keeps_only_keys_and_values(policy.model) is (family in ATTENTION)
    for static in (False, True):
        policy.static_cache = static
        rollouts = policy.sample(
            PROMPTS, group_size=3, max_tokens=24, generator=torch.Generator().manual_seed(1)
        )
        truth = row_by_row(policy, rollouts)
        # Rounding is at most 3e-4, in the models that keep a running state.
        torch.testing.assert_close(rollouts.old_logprobs, truth, rtol=0, atol=3e-3)
        torch.testing.assert_close(policy.logprobs(rollouts), truth, rtol=0, atol=3e-3)
    shared = shared_prompt_logprobs(policy, rollouts)
    torch.testing.assert_close(shared, truth, rtol=0, atol=3e-3)
    ours, plain = gradient(policy, shared), gradient(policy, policy.logprobs(rollouts))
    assert (ours - plain).norm() < 1e-3 * plain.norm()


def test_a_model_without_keys_and_values_is_refused_before_anything_is_sampled(tmp_path):
    mamba = {"expand": 2, "num_heads": 8, "state_size": 16, "n_groups": 1, "chunk_size": 16}
    policy = random_policy("mamba2", mamba)
    says = "Mamba2ForCausalLM keeps no keys and values .*: choose a model with attention layers"
    with pytest.raises(UserError, match=says):
        policy.sample(["1 2 3"], group_size=2, max_tokens=4)
    policy.save(tmp_path / "mamba")
    with pytest.raises(UserError, match=says):
        Policy.load(tmp_path / "mamba")


NEMOTRON = {"mamba_num_heads": 8, "mamba_head_dim": 16, "ssm_state_size": 16, "n_groups": 1}


@pytest.mark.parametrize(
    "family",
    [
        ("recurrent_gemma", {}),
        ("nemotron_h", NEMOTRON | {"layers_block_type": ["mamba", "attention", "mamba", "mlp"]}),
    ],
)
def test_a_model_whose_rows_depend_on_each_other_is_refused(family, tmp_path):
    policy = random_policy(*family)
    policy.save(tmp_path / "model")
    says = rf"{type(policy.model).__name__} gives .* different log-probs in a batch and alone"
    with pytest.raises(UserError, match=says):
        Policy.load(tmp_path / "model")
