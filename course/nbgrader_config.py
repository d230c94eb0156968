"""nbgrader's settings for this course. Run nbgrader inside this directory."""

import contextlib

c = get_config()  # noqa: F821  (nbgrader defines it)

c.CourseDirectory.course_id = "rlcourse"

# What students see in place of a solution. `rlcourse build` reads these two as well.
c.ClearSolutions.code_stub = {"python": "raise NotImplementedError"}
c.ClearSolutions.text_stub = "*Write your answer here.*"

# Student code runs confined and is judged from outside: `nbgrader autograde`, Formgrader's button
# and `rlcourse grade` are the same grader. Where it cannot be put in nbgrader's place, nbgrader's
# own steps refuse to run, rather than run student code beside the gradebook.
c.Autograde.sanitize_preprocessors = ["rlcourse.grading.nbgrader_plugin.Refuse"]
c.Autograde.autograde_preprocessors = ["rlcourse.grading.nbgrader_plugin.Refuse"]
with contextlib.suppress(Exception):
    from rlcourse.grading.nbgrader_plugin import install

    install()

# `nbgrader collect` notes when a submission really came: its time is the student's own to write.
c.ExchangeFactory.collect = "rlcourse.grading.platforms.exchange.Collect"

# `nbgrader release_feedback` serves those who handed in through the exchange, and names the others.
c.ExchangeFactory.release_feedback = "rlcourse.grading.platforms.exchange.ReleaseFeedback"

# Students' Markdown and outputs are shown to staff: no scripts in the feedback.
c.HTMLExporter.sanitize_html = True
