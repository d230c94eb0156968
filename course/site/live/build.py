"""Put the page "Train one" together: its modules, the weights, and jax-js by npm."""

import json
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
TITLE = "Train one"
RECORDED_ONLY = "so the page “Train one” only plays a recorded run"


def write_files(target: Path) -> str:
    """Write everything that the page loads to `target`; one sentence on what is missing, or ""."""
    target.mkdir(parents=True, exist_ok=True)
    for pattern in ("*.js", "*.css", "*.safetensors", "world.json", "recorded.json", "cases.json"):
        for path in HERE.glob(pattern):
            shutil.copyfile(path, target / path.name)
    return install_jax(target / "jax")


def page() -> str:
    """The page as Markdown: the application, and a table of the recorded run that takes its place
    where the program does not load: without JavaScript, and from a file instead of a server."""
    html = (HERE / "page.html").read_text("utf-8").replace("{recorded}", recorded_table())
    front = "---\nhide-toc: true\n---\n"
    return f"{front}# {TITLE}\n\n```{{raw}} html\n{html}\n```\n"


def recorded_table() -> str:
    run = json.loads((HERE / "recorded.json").read_text("utf-8"))
    measured = [(0, run["before"], None)]
    measured += [(m["step"], m["held"], m["reward"]) for m in run["history"] if m.get("held")]
    rows = "".join(
        f"<tr><td>{step}</td><td>{held['accuracy'] + 1e-9:.2f}</td>"
        f"<td>{held['low']:.2f} to {held['high']:.2f}</td>"
        f"<td>{'' if reward is None else f'{reward:.2f}'}</td></tr>"
        for step, held, reward in measured
    )
    return (
        "<p>To train, this page needs JavaScript and a web server. If you opened it as a file, run "
        "<code>python -m http.server</code> in the folder of the site and open "
        "<code>http://localhost:8000/train-one.html</code>.</p>"
        "<p>This is what a recorded run of it did: accuracy on 128 held-out questions, with its "
        "95 % interval, and the mean reward of the step.</p>"
        "<table><thead><tr><th>step</th><th>accuracy</th><th>interval</th>"
        f"<th>reward</th></tr></thead><tbody>{rows}</tbody></table>"
    )


def install_jax(target: Path) -> str:
    """jax-js as the lock file names it, in `target`; one sentence on what is missing, or ""."""
    npm = shutil.which("npm")
    if npm is None:
        return (
            f"npm is not installed, {RECORDED_ONLY}: install Node.js (nodejs.org) and build again."
        )
    with TemporaryDirectory() as scratch:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, scratch)
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = subprocess.run(command, cwd=scratch, capture_output=True, text=True)
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if line.startswith("npm error")]
            why = (lines or ["no reason given"])[0].removeprefix("npm error").strip()
            return f"npm could not install jax-js ({why}), {RECORDED_ONLY}: build again online."
        package = Path(scratch, "node_modules/@jax-js/jax")
        target.mkdir(exist_ok=True)
        for path in [*package.glob("dist/*.js"), package / "LICENSE"]:
            shutil.copyfile(path, target / path.name)
    return ""
