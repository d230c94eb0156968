"""nbgrader's settings for this course. Run nbgrader inside this directory, ``course/``."""

c = get_config()  # noqa: F821  (nbgrader defines it)

c.CourseDirectory.course_id = "rlcourse"

# What students see in place of a solution. `rlcourse build` reads these two as well.
c.ClearSolutions.code_stub = {"python": "raise NotImplementedError"}
c.ClearSolutions.text_stub = "*Write your answer here.*"

# Cells that train carry the tag `skip-execution`; nothing in a graded run takes longer than this.
c.Execute.timeout = 60
c.Execute.startup_timeout = 120
c.Execute.iopub_timeout = 30
c.Execute.error_on_timeout = {
    "ename": "TimeoutError",
    "evalue": "the cell ran longer than 60 seconds",
    "traceback": ["The cell ran longer than 60 seconds and was stopped."],
}
c.Execute.shutdown_kernel = "immediate"

# A check cell that a student deleted comes back and scores 0, rather than ending the batch.
c.OverwriteCells.add_missing_cells = True

# Tags decide which cells run, so a graded cell keeps none of those that a submission brings.
c.Autograde.sanitize_preprocessors = [
    "nbgrader.preprocessors.ClearOutput",
    "nbgrader.preprocessors.DeduplicateIds",
    "nbgrader.preprocessors.OverwriteKernelspec",
    "nbgrader.preprocessors.OverwriteCells",
    "rlcourse.authoring.sanitize.DropGradedTags",
    "nbgrader.preprocessors.CheckCellMetadata",
]

# Students' Markdown and outputs are shown to staff: no scripts in the feedback.
c.HTMLExporter.sanitize_html = True
