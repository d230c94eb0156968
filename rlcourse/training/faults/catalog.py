"""Faults that can be switched on: real mistakes of real training code, for lesson 10.

``rlcourse train grpo fault=stale_sampler`` trains as a program with this mistake would. Each row
says what is wrong, where, which metric gives it away, and where it happened. The function of the
same name in ``faulty``, which is imported only when a fault is switched on, says what it does.
"""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Fault:
    """One mistake, and the recipe's settings that it needs in order to show."""

    what: str  # is wrong
    where: str  # it sits: sampler, scoring, mask, reward, advantages, loss, weights, settings
    signal: str  # what it does to the metrics
    seen: str  # where it happened, if it is known of one place
    settings: dict[str, Any] = field(default_factory=dict)  # in place of a recipe's defaults
    needs: str = ""  # what the loss must be given for the mistake to be possible


FAULTS = {
    "stale_sampler": Fault(
        "completions come from the weights of the first step, whatever is learned",
        "sampler",
        "gap/mean is 0 at the first step and grows; the reward stays where it was",
        "TRL #5312",
    ),
    "missing_temperature": Fault(
        "sampled at a temperature, scored at 1",
        "scoring",
        "gap/mean of some hundredths, from the first step on; ratio/max is little above 1",
        "TRL PR #3029, OpenRLHF PR #853",
        {"temperature": 1.3},
    ),
    "dropout": Fault(
        "dropout is on while completions are scored",
        "scoring",
        "gap/mean of about a tenth at every step, ratio/max from 5 to 60",
        "TRL PR #3234",
    ),
    "padding_counted": Fault(
        "the mask has no zeros: padding after the end is learned, too",
        "mask",
        "loss_tokens above 1, every completion of one length, gap/mean of several nats",
        "MemGen PR #33",
    ),
    "masked_eos": Fault(
        "the token that ends a completion is left out of the loss",
        "mask",
        "loss_tokens below 1; no other metric, and not the reward",
        "TRL PR #4970",
        needs="mask",
    ),
    "unreadable_gold": Fault(
        "a reference answer that cannot be read counts as agreement",
        "reward",
        "reward/mean far above accuracy at the first step",
        "open-r1 #293, open-r1 PR #566",
    ),
    "empty_answer": Fault(
        "an answer that was not found is the empty text, which every reference contains",
        "reward",
        "reward/mean above accuracy by a tenth or two at first, and then further and further",
        "Visual-RFT #176",
    ),
    "wrong_grouping": Fault(
        "rewards are compared across questions, as if the batch were laid out the other way",
        "advantages",
        "advantages/equal_rewards above 0: groups of equal rewards get advantages",
        "prime-rl PR #600, Search-R1 #88, slime #2230",
    ),
    "ratio_one": Fault(
        "the old log-probs are the current ones, computed anew at every update",
        "loss",
        "clip_ratio is 0 while clip_ratio/high and ratio/max say that tokens have left the band",
        "torchforge PR #571, verifiers PR #320",
        {"num_iterations": 4},
        needs="old_logprobs",
    ),
    "kl_sign": Fault(
        "the KL divergence is rewarded, not penalized",
        "loss",
        "kl grows without bound and the loss falls below 0 with it",
        "Logic-RL #58, RAGEN #58",
        {"beta": 0.05},
        needs="beta",
    ),
    "bfloat16_weights": Fault(
        "the weights are kept in bfloat16, and small updates are rounded away",
        "weights",
        "weights_changed far below 1 at an ordinary grad_norm",
        "ml-by-hand PR #85, OpenRLHF #1155",
        {"lr": 3e-5},
    ),
    "all_truncated": Fault(
        "max_tokens is smaller than an answer",
        "settings",
        "completions/clipped_ratio and frac_reward_zero_std near 1, grad_norm 0",
        "TRL #5697",
        {"max_tokens": 8},
    ),
}
