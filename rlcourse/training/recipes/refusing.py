"""Keys that a recipe does not have: another method's, an older version's, or another library's."""

from collections.abc import Iterable, Mapping
from typing import Any

from rlcourse.errors import UserError
from rlcourse.training.recipes.values import nearest

# Keys of earlier versions, and what they are called now.
RENAMED = {"prompts": "prompts_per_step", "updates": "num_iterations"}
# What the same is called elsewhere: in Transformers, TRL, verl, OpenRLHF, prime-rl, papers.
ELSEWHERE = {
    "optimizer": "optim optim_type optimizer_name",
    "lr": "learning_rate actor_lr step_size",
    "schedule": "lr_scheduler_type scheduler lr_schedule",
    "warmup": "warmup_steps num_warmup_steps lr_warmup_steps warmup_ratio",
    "betas": "adam_beta1 adam_beta2 adam_betas",
    "max_grad_norm": "grad_clip clip_grad gradient_clipping max_norm grad_norm_clip",
    "steps": "max_steps num_steps total_steps iterations training_steps epochs num_train_epochs "
    "total_epochs num_epochs",
    "prompts_per_step": "batch_size train_batch_size per_device_train_batch_size "
    "rollout_batch_size global_batch_size num_prompts",
    "group_size": "num_generations rollout_n n_samples_per_prompt num_samples num_return_sequences "
    "rollouts_per_example samples_per_prompt",
    "max_tokens": "max_new_tokens max_completion_length max_response_length response_length "
    "max_length generate_max_len",
    "num_iterations": "ppo_epochs num_ppo_epochs mu inner_epochs passes",
    "minibatches": "num_mini_batches num_minibatches steps_per_generation",
    "micro_batch": "micro_batch_size ppo_micro_batch_size_per_gpu gradient_accumulation_steps "
    "per_device_batch_size mini_batch_size",
    "clip": "epsilon eps_clip clip_eps clip_range cliprange clip_ratio epsilon_low clip_ratio_low "
    "clip_low",
    "clip_high": "epsilon_high clip_ratio_high eps_clip_high",
    "beta": "kl_coef kl_coeff kl_beta kl_loss_coef kl_penalty init_kl_coef kl_weight",
    "reference_every": "ref_model_sync_steps sync_ref_model",
    "lam": "gae_lambda lambda lmbda lambda_",
    "gamma": "discount discount_factor",
    "critic_lr": "value_lr critic_learning_rate vf_lr",
    "sampler_staleness": "max_async_level async_level off_policy_steps staleness",
    "overlong_filter": "mask_truncated_completions overlong_filtering",
    "warm_start": "init_from sft_model",
    "policy": "model model_name model_name_or_path model_path pretrain",
    "task": "dataset dataset_name train_files",
    "system": "system_prompt",
    "device": "use_cpu cuda gpu",
    "dtype": "bf16 fp16 torch_dtype precision mixed_precision",
    "gradient_checkpointing": "activation_checkpointing enable_gradient_checkpointing",
    "eval_every": "eval_steps test_freq eval_freq eval_interval",
    "eval_problems": "eval_size num_eval max_eval_samples",
    "checkpoint_every": "save_steps save_freq save_interval",
    "rewards": "reward_weights reward_funcs",
    "lora": "use_peft use_lora lora_r lora_rank peft_config",
    "static_cache": "use_cuda_graph cuda_graphs",
    "truncate": "importance_sampling tis_imp_ratio_cap vllm_importance_sampling_cap",
    "shuffle": "shuffle_dataset",
}
CALLED_HERE = {word: name for name, words in ELSEWHERE.items() for word in words.split()}


def refuse_unknown(
    values: Mapping[str, Any], kind: Any, kinds: Mapping[str, Any], where: str = ""
) -> None:
    """Raise ``UserError`` for the first key that `kind`, the class of the recipe's method, has not.

    `kinds` are the classes of all methods, by name; `where` is the file that the keys are in.
    """
    for key in values:
        if key not in kind.settings():
            refuse_misspelled(key, kinds, where)
            owners = [name for name, other in kinds.items() if key in other.settings()]
            place, instead = where and f"{where}: ", _otherwise(key, kind, values)
            raise UserError(
                f"{place}{key} is {_possessive(owners)}; {values['algorithm']} {instead}"
            )


def refuse_misspelled(key: str, kinds: Mapping[str, Any], where: str = "") -> None:
    """Raise ``UserError`` if no method has a setting of this name."""
    known = {name for kind in kinds.values() for name in kind.settings()}
    if key in known:
        return
    if key in RENAMED:
        hint = f": it is called '{RENAMED[key]}' now"
    elif called := CALLED_HERE.get(str(key).lower().replace("-", "_")):
        hint = f": it is called '{called}' here"
    else:
        hint = nearest(str(key), sorted(known))
    raise UserError(f"{where or 'the recipe'} has no key '{key}'{hint}")


def _otherwise(key: str, kind: Any, values: Mapping[str, Any]) -> str:
    """What the method does in place of a setting that it lacks."""
    said = [c.instead[key] for c in kind.__mro__ if key in getattr(c, "instead", {})]
    own = {name: values.get(name, field.default) for name, field in kind.settings().items()}
    return said[0].format(**own) if said else "has no such setting"


def _possessive(owners: Iterable[str]) -> str:
    *others, last = [f"{name}'s" for name in owners]
    if len(others) > 3:
        return f"{', '.join(others[:3])} and others'"
    return f"{', '.join(others)} and {last}" if others else last
