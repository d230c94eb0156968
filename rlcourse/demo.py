"""``rlcourse demo``."""


def demo() -> None:
    """Train the embedded model and check a sample submission, without a browser."""
    from rlcourse import training
    from rlcourse.authoring import check_notebook, write_sample_submission
    from rlcourse.signals import continued_by
    from rlcourse.training.runs.run_directory import next_run_directory

    recipe = training.load_recipe("grpo", eval_every=10)
    out = next_run_directory("demo")
    with continued_by(
        "the demo",
        f"continue with `rlcourse train {out}/recipe.yaml --out {out} "
        "--resume`, or begin again with `rlcourse demo`",
    ):
        run = training.train(recipe, out=out)
    print(run.summary())
    print("  its slider under “Step by step” shows what the model wrote as it learned")
    sample = write_sample_submission(run.directory / "sample_submission.ipynb")
    print(f"\nA submission of lesson 02 with a bug in it, {sample}:\n")
    print(check_notebook(sample))
