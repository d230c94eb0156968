"""A small course of its own: one lesson, two exercises of the library, one question."""

from dataclasses import replace
from pathlib import Path

from rlcourse import exercises

REPOSITORY = Path(__file__).parents[2]
NAME = "90_fixture"
LESSON = """\
# Fixture lesson

A sentence with $\\nabla J(\\theta)$ and code that is no cell:

```text
not python
```

```python
import torch
import torch.nn.functional as F
from torch import Tensor
from tqdm.notebook import tqdm

from rlcourse import check, ready
```

Write the score.

```python exercise="score_function"
```

```python exercise="reinforce_loss"
```

```python tags=["demo"]
if ready(score_function):
    for _ in tqdm([]):
        pass
    print("the demo ran", score_function(torch.zeros(2), 0).tolist())
```

<!-- #region question="why_sum" points=2 -->
Why is the log-probability of a completion a sum?
<!-- #endregion -->

<!-- #region answer="why_sum" -->
Because the probability is a product over its tokens.
<!-- #endregion -->

The end.
"""


def declare(name: str, **changes):
    """The exercise of that name, moved to the fixture lesson."""
    return replace(exercises.get(name), **{"lesson": NAME, **changes})
