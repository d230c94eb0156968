"""The token inspector: one small page without a script, whose numbers are the trainer's."""

import re
from html.parser import HTMLParser

import pytest
import torch

from rlcourse.errors import UserError
from rlcourse.policy import Policy
from rlcourse.reports.tokens import MEASURES, TokenGroup, TokenPage, Tokens
from rlcourse.training import inspect_rollouts

LIMIT = 300_000  # bytes of 64 completions
SCRIPT = re.compile(r"<script|\son\w+=|javascript:|<link|https?://|<img|url\(", re.IGNORECASE)


class Elements(HTMLParser):
    """[(tag, attributes, text directly within)] of a fragment; unbalanced tags are counted."""

    def __init__(self, text: str):
        super().__init__()
        self.found, self.open, self.errors = [], [], 0
        self.feed(text)
        self.errors += len(self.open)

    def handle_starttag(self, tag, attributes):
        self.found.append([tag, dict(attributes), ""])
        if tag not in ("input", "br"):
            self.open.append((tag, len(self.found) - 1))

    def handle_endtag(self, tag):
        self.errors += not self.open or self.open.pop()[0] != tag

    def handle_data(self, text):
        if self.open:
            self.found[self.open[-1][1]][2] += text

    def all(self, tag: str):
        return [(attributes, text) for name, attributes, text in self.found if name == tag]


def page(completions: int = 64, tokens: int = 22, text: str = " 12") -> TokenPage:
    """As large as a report's of the embedded model, whose completions have 22 tokens on average."""
    generator = torch.Generator().manual_seed(0)
    measured = {
        "logprob": -torch.rand(tokens, generator=generator) * 4,
        "ratio": torch.rand(tokens, generator=generator) * 3,
        "advantage": torch.randn(tokens, generator=generator),
        "kl": torch.rand(tokens, generator=generator),
    }
    one = Tokens([text] * tokens, {name: of.tolist() for name, of in measured.items()}, 1.0)
    some = [one] * (completions // 8)
    return TokenPage(
        [TokenGroup(f"question {i}", {"before": some, "after": some}) for i in range(4)]
    )


def test_sixty_four_completions_are_small_and_need_no_script_and_no_network():
    for inline in (False, True):
        html = page().html(inline)
        assert len(html.encode()) < LIMIT, len(html.encode())
        assert not SCRIPT.search(html)
        elements = Elements(html)
        assert not elements.errors
        assert len(elements.all("i")) == 64 * 22


def test_what_does_not_fit_is_left_out_and_said():
    html = page(tokens=300).html()
    assert len(html.encode()) < LIMIT
    assert "3 more questions are not shown" in html and "more tokens" in html
    assert "not shown" not in page().html()


def test_one_switch_of_radio_buttons_that_the_keyboard_reaches():
    elements = Elements(page().html())
    radios = [attributes for attributes, _ in elements.all("input")]
    order = ["ratio", "logprob", "advantage", "kl"]
    assert [r["value"] for r in radios] == order
    assert len({r["name"] for r in radios}) == 1 and {r["type"] for r in radios} == {"radio"}
    assert ["checked" in r for r in radios] == [True, False, False, False]
    labels = [text.strip() for _, text in elements.all("label")]
    assert labels == [MEASURES[name].name for name in order]
    assert {attributes["tabindex"] for attributes, _ in elements.all("i")} == {"0"}
    opened = ["open" in attributes for attributes, _ in elements.all("details")]
    assert opened == [True, False, False, False]  # the closed ones are no tab stops


def test_a_token_says_its_numbers_and_stands_on_its_step_of_each_scale():
    values = {"logprob": [-0.6931], "ratio": [0.5], "advantage": [-1.6], "kl": [0.0004]}
    group = TokenGroup("q", {"completions": [Tokens(["x"], values)]})
    (token,) = Elements(TokenPage([group]).html()).all("i")
    assert token[0]["title"] == "ratio 0.50 · log-prob −0.69 (50%) · advantage −1.60 · KL 0.0004"
    assert token[0]["class"] == "r1 l3 a0 k0"


def test_it_opens_on_the_ratio_only_where_that_shows_something():
    def opened(ratio: float) -> str:
        tokens = Tokens(["x"], {"logprob": [-0.7], "ratio": [ratio]})
        return TokenPage([TokenGroup("q", {"completions": [tokens]})]).measures[0]

    assert [opened(1.0), opened(1.02), opened(1.3)] == ["logprob", "logprob", "ratio"]


def test_no_text_of_a_model_becomes_markup_or_a_formula():
    text = '<b onclick="x">&</b><script>$a$'
    group = TokenGroup(text, {"c": [Tokens([text], {"logprob": [-1.0]})]})
    html = TokenPage([group]).html()
    assert "<b onclick" not in html and "<script" not in html
    assert html.count("<span>$</span>a<span>$</span>") == 2  # no pair of plain dollar signs


# Numbers of a real policy


@pytest.fixture(scope="module")
def policy():
    return Policy.load("tiny")


@pytest.fixture(scope="module")
def batch(policy):
    generator = torch.Generator().manual_seed(0)
    return policy.sample(["Question: 1 + 1?\nAnswer:"], 4, max_tokens=12, generator=generator)


def changed(policy):
    other = policy.clone()
    with torch.no_grad():
        for weights in other.parameters():
            weights.mul_(1.05)
    return other


def test_the_numbers_are_those_of_the_formulas(policy, batch):
    other = changed(policy)
    (group,) = inspect_rollouts(other, batch, old=policy).groups
    with torch.no_grad():
        now, before = other.logprobs(batch), policy.logprobs(batch)
    for i, one in enumerate(group.columns["completions"]):
        real = batch.mask[i]
        assert len(one.texts) == int(real.sum())
        ratio = (now - before)[i][real].exp()
        x = (before - now)[i][real]
        for name, right in (
            ("logprob", batch.old_logprobs[i][real]),
            ("ratio", ratio),
            ("kl", x.exp() - x - 1),
        ):
            torch.testing.assert_close(torch.tensor(one.values[name]), right, atol=2e-5, rtol=1e-4)
        assert "advantage" not in one.values


def test_the_policy_that_sampled_has_ratio_one(policy, batch):
    (group,) = inspect_rollouts(policy, batch).groups
    ratios = [r for one in group.columns["completions"] for r in one.values["ratio"]]
    assert max(abs(r - 1) for r in ratios) < 1e-3


def test_columns_of_other_prompts_are_refused(policy, batch):
    other = policy.sample(["Question: 2 + 2?\nAnswer:"], 4, max_tokens=4)
    with pytest.raises(UserError, match="not of the same prompts"):
        inspect_rollouts(policy, {"before": batch, "after": other})
