"""nbgrader's settings for everybody on a hub: where lessons are handed out and handed in.

A student's lessons are in one folder of their home, the same one that `rlcourse lab` fills.
"""

import os
from pathlib import Path

c = get_config()  # noqa: F821  (nbgrader defines it)

c.CourseDirectory.course_id = "rlcourse"
c.Exchange.root = os.environ.get("RLCOURSE_EXCHANGE", "/srv/nbgrader/exchange")
c.Exchange.assignment_dir = str(Path.home() / "rlcourse-lessons")
