"""Run a notebook's cells in a Python kernel that is this very interpreter."""

import logging
import os
import re
import sys
from pathlib import Path

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbformat import NotebookNode
from nbformat.v4 import new_output
from tqdm import tqdm
from traitlets import default

from rlcourse.checks.telling.result import MIME_TYPE
from rlcourse.errors import UserError

_LOG = logging.getLogger(__name__)  # the cells' outputs already say it
_LOG.addHandler(logging.NullHandler())
_LOG.propagate = False
_COLORS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")  # a terminal's control sequences


class _ThisInterpreter(KernelSpecManager):
    """Answers every kernel name with ``sys.executable``: no installed kernel spec is needed, and
    a ``python3`` spec of another environment is never started by mistake."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        # The kernel's advice is not meant for the course's users.
        command.append("--IPKernelApp.log_level=ERROR")
        return KernelSpec(argv=command, display_name="Python 3", language="python")


class _KernelManager(AsyncKernelManager):
    @default("kernel_spec_manager")
    def _default_spec_manager(self) -> KernelSpecManager:
        return _ThisInterpreter(parent=self)


def run_cells(
    notebook: NotebookNode,
    cwd: Path,
    *,
    timeout: float | None,
    stop_on_error: bool,
    skip_tag: str = "",
    environment: dict[str, str] | None = None,
    label: str = "",
    progress: bool = True,
) -> int | None:
    """Execute the code cells of ``notebook`` in place, but for those with the tag ``skip_tag``.

    A cell that raises or runs longer than ``timeout`` seconds keeps the error among its outputs;
    with ``stop_on_error`` that ends the run. Returns the index of the cell at which the run
    ended early (an error, or the death of the kernel), or None when every cell was run.
    """
    reached = 0
    cells = sum(cell.cell_type == "code" for cell in notebook.cells)
    bar = tqdm(total=cells, desc=label, unit="cell", disable=not progress, leave=False)

    def note(cell: NotebookNode, cell_index: int) -> None:
        nonlocal reached
        reached = cell_index
        bar.update()

    client = NotebookClient(
        notebook,
        kernel_manager_class=_KernelManager,
        kernel_name="python3",
        resources={"metadata": {"path": str(cwd)}},
        timeout=timeout,
        startup_timeout=120,
        iopub_timeout=30,
        interrupt_on_timeout=True,
        error_on_timeout=_timeout_reply(timeout),
        allow_errors=not stop_on_error,
        record_timing=False,
        shutdown_kernel="immediate",
        log=_LOG,
        on_cell_execute=note,
        on_cell_executed=_record_reply,
        skip_cells_with_tag=skip_tag,
    )
    try:
        with bar:
            client.execute(env={**os.environ, **(environment or {})})
    except (CellExecutionError, DeadKernelError):
        return reached
    except (RuntimeError, OSError) as error:
        raise UserError(f"no Python kernel could be started: {error}.") from error
    return None


def error_of(cell: NotebookNode) -> str:
    """The first error in a cell's outputs, as "NameError: name 'x' is not defined"; else ""."""
    for output in cell.get("outputs", []):
        if output.output_type == "error":
            return f"{output.ename}: {output.evalue}" if output.evalue else output.ename
    return ""


def traceback_of(cell: NotebookNode, lines: int = 15) -> str:
    """The last lines of the traceback in a cell's outputs, without colors; "" if there is none."""
    for output in cell.get("outputs", []):
        if output.output_type == "error":
            text = _COLORS.sub("", "\n".join(output.traceback))
            return "\n".join(text.splitlines()[-lines:])
    return ""


def verdict_of(cell: NotebookNode) -> dict | None:
    """The last verdict of a check among a cell's outputs, as ``Result.as_json`` has it, or None."""
    data = [output.get("data", {}) for output in cell.get("outputs", [])]
    found = [each[MIME_TYPE] for each in data if MIME_TYPE in each]
    return found[-1] if found else None


def _record_reply(cell: NotebookNode, cell_index: int, execute_reply: dict) -> None:
    """A timeout is only in the kernel's reply; put it where the other errors are."""
    reply = execute_reply["content"]
    if reply["status"] == "error" and not error_of(cell).startswith(reply["ename"]):
        error = new_output("error", ename=reply["ename"], evalue=reply["evalue"], traceback=[])
        cell.outputs.insert(0, error)


def _timeout_reply(timeout: float | None) -> dict:
    evalue = f"the cell ran longer than {timeout:g} seconds" if timeout else ""
    return {"ename": "TimeoutError", "evalue": evalue, "traceback": []}
