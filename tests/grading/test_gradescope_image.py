"""The archive in Gradescope's own image, with the limits of its default container.

Built where a container engine answers (``pytest --images``); test_gradescope.py tries the same
scripts without one.
"""

import json
import zipfile

import classroom as room
import pytest
from containers import Image

from rlcourse.grading.gradescope.archive import write_archive

IMAGE = """
FROM docker.io/gradescope/autograder-base:ubuntu-22.04
COPY source /autograder/source
RUN cp /autograder/source/run_autograder /autograder/ \\
    && mkdir -p /autograder/submission /autograder/results \\
    && bash /autograder/source/setup.sh
"""
DEFAULT = ("--memory=768m", "--memory-swap=768m", "--cpus=0.5")  # Gradescope's smallest container


@pytest.fixture(scope="module")
def image(request, template, tmp_path_factory):
    folder = tmp_path_factory.mktemp("gradescope")
    write_archive(room.LESSON, template, folder / "autograder.zip")
    with zipfile.ZipFile(folder / "autograder.zip") as archive:
        archive.extractall(folder / "source")
    (folder / "source" / "run_autograder").chmod(0o755)
    (folder / "Dockerfile").write_text(IMAGE)
    return Image(request, folder)


@pytest.mark.slow
def test_a_right_and_a_wrong_notebook_are_graded_in_the_default_container(
    image, template, tmp_path
):
    sign = room.solution("monte_carlo_policy_gradient").replace("return (", "return -(")
    solved = room.solved(template)
    total = sum(room.POINTS.values())
    for notebook in (solved, room.with_answers(solved, monte_carlo_policy_gradient=sign)):
        path = tmp_path / "homework.ipynb"
        path.write_text(json.dumps(notebook))
        place = "/autograder/submission/homework.ipynb"
        said = image.run(
            *("sh", "-c", "/autograder/run_autograder && cat /autograder/results/results.json"),
            options=(*DEFAULT, f"--volume={path}:{place}:ro"),
        )
        print(said.partition("{")[0])  # the layers of isolation, and the points
        assert "landlock, seccomp, limits" in said
        tests = json.loads(said[said.index("{") : said.rindex("}") + 1])["tests"]
        points = sum(test.get("score", 0) for test in tests)
        assert (points == total) == (notebook is solved)
        assert ("its sign flipped" in said) == (notebook is not solved)
