"""A notebook that shows everything that the course shows as HTML, executed, and what is in it."""

from pathlib import Path

import nbformat
from nbclient import NotebookClient

CELLS = {
    "names": """
from torch import Tensor

from rlcourse import check, hint, progress
from rlcourse.evaluation import Evaluation, transcripts_table
from rlcourse.evaluation.scores import Completion, Transcript
from rlcourse.reports.tokens import MEASURES, TokenGroup, TokenPage, Tokens
from rlcourse.training import load_recipe, train
""",
    "right": """
def mean_reward(rewards: Tensor) -> Tensor:
    return rewards.mean()

check(mean_reward)
""",
    "wrong": """
def reinforce_loss(logprobs, advantages, mask):
    return -(advantages[:, None].detach() * logprobs * mask).mean()

check(reinforce_loss)
""",
    "unwritten": """
def grpo_loss(logprobs, old_logprobs, advantages, mask):
    raise NotImplementedError

check(grpo_loss)
""",
    "hint_and_progress": "hint(reinforce_loss); progress()",
    "transcripts": """
QUESTION = "Mia has 12 shells and finds 7 more at $2 each. How many shells does she have now?"
SUMS = "12 + 7 = 19\\n19 + 30 = 49\\n49 - 30 = 19\\n#### {}"

def written(n):
    return Completion(SUMS.format(n), str(n), n == 19, str(n), n == 19, 30, False)

def transcript(n):
    samples = tuple(map(written, (19, n, n)))
    return Transcript(QUESTION, "12 + 7 = 19\\n#### 19", written(n), samples)

before, after = (Evaluation.of([transcript(n)] * 2, 1.0, 1.0) for n in (18, 19))
transcripts_table(before, after)
""",
    "evaluation": "after",
    "tokens": """
texts = ["12", " +", " 7", " =", " 19", "\\n", "####", " 19"]
values = {name: [0.0, -4.0, -0.5, 0.01, 0.6, 3.0, 1.0, -2.0] for name in MEASURES}
group = [Tokens(texts, values, reward) for reward in (1.0, 0.0)]
TokenPage([TokenGroup(QUESTION, {"before": group, "after": group})] * 2)
""",
    "run": """
small = {"warm_start": None, "steps": 3, "prompts_per_step": 2, "group_size": 2}
small |= {"eval_every": 1, "eval_problems": 4, "eval_samples": 2}
run = train(load_recipe("grpo").but(**small))
run
""",
}


def executed(directory: Path) -> nbformat.NotebookNode:
    """The notebook, run in `directory`, with what its cells show as HTML."""
    cells = [nbformat.v4.new_code_cell(text.strip(), id=name) for name, text in CELLS.items()]
    notebook = nbformat.v4.new_notebook(cells=cells)
    resources = {"metadata": {"path": str(directory)}}
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()
    return notebook
