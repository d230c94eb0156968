"""The sample submission of ``rlcourse demo`` is a solved lesson with one bug."""

import nbformat

from rlcourse import exercises
from rlcourse.authoring import sample, stubs
from rlcourse.courses import shipped


def test_every_exercise_is_written_and_one_of_them_wrong(tmp_path):
    path = sample.write_sample_submission(tmp_path / "deep" / "sample.ipynb")
    node = nbformat.read(path, as_version=4)
    nbformat.validate(node)
    sources = {cell.id: cell.source for cell in node.cells}
    bug = shipped().sample
    wrong = []
    for name in shipped().exercises[bug["exercise"]].exercises:
        right = stubs.solution(exercises.get(name).reference, marks=False)
        assert stubs.STUB not in sources[name]
        wrong += [name] * (sources[name] != right)
    assert wrong == [bug["exercise"]]
    assert bug["wrong"] in sources[bug["exercise"]]
