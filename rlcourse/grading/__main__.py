"""A job from standard input, as JSON; the report on standard output. For ``nbgrader_plugin``."""

import json
import sys
from pathlib import Path

from rlcourse.errors import UserError
from rlcourse.grading.books.gradebook import Course
from rlcourse.grading.engine import Options, grade


def main() -> int:
    job = json.load(sys.stdin)
    settings = job["course"]
    try:
        report = grade(
            job["lesson"],
            student=job["student"],
            course=Course.open(Path(settings.pop("root")), **settings),
            options=Options(force=job["force"], allow_weak_isolation=job["allow_weak_isolation"]),
            on_warning=lambda text: print(text, file=sys.stderr),
        )
    except UserError as error:
        print(error, file=sys.stderr)
        return 1
    json.dump(report.as_json(), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
