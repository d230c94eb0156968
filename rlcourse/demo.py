"""``rlcourse demo``."""


def demo() -> None:
    """Train the embedded model and check a sample submission, without a browser."""
    from rlcourse import training
    from rlcourse.authoring.runner import check_notebook
    from rlcourse.authoring.sample import write_sample_submission
    from rlcourse.training.runs.run_directory import next_run_directory

    recipe = training.load_recipe("grpo", eval_every=10)
    out = next_run_directory("demo")
    try:
        run = training.train(recipe, out=out)
    except training.Interrupted as stopped:  # training itself would name options of another command
        again = f"`rlcourse train {out}/recipe.yaml --out {out} --resume`"
        stopped.args = (
            f"the demo was interrupted; continue with {again}, or begin again with `rlcourse demo`",
        )
        raise
    print(run.summary())
    print("  its slider under “Step by step” shows what the model wrote as it learned")
    sample = write_sample_submission(run.directory / "sample_submission.ipynb")
    print(f"\nA submission of lesson 02 with a bug in it, {sample}:\n")
    print(check_notebook(sample))
