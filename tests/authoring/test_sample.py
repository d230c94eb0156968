"""The sample submission of ``rlcourse demo`` is a solved lesson with one bug."""

import nbformat

from rlcourse import exercises
from rlcourse.authoring import sample, stubs


def test_every_exercise_is_written_and_one_of_them_wrong(tmp_path):
    path = sample.write_sample_submission(tmp_path / "deep" / "sample.ipynb")
    node = nbformat.read(path, as_version=4)
    nbformat.validate(node)
    sources = {cell.id: cell.source for cell in node.cells}
    wrong = []
    for exercise in exercises.all():
        if exercise.lesson == sample.LESSON:
            right = stubs.solution(exercise.reference, marks=False)
            assert stubs.STUB not in sources[exercise.name]
            wrong += [exercise.name] * (sources[exercise.name] != right)
    assert wrong == [sample.EXERCISE]
    assert sample.WRONG in sources[sample.EXERCISE]
