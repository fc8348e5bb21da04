"""One notebook through papermill, with limits: time, memory, kernels that die or never start.

:func:`execute` takes and returns plain data (JSON text and dictionaries), so that the same call serves this process, a
worker of a local cluster, and a worker on another machine that shares no disk with us.
"""
from __future__ import annotations

import logging
import os
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
import papermill
import psutil
from jupyter_client.manager import AsyncKernelManager
from paperbook.claims import MIME

from . import cache

GB = 1e9
PROFILES = {"quick": dict(seconds=300, memory=2 * GB), "full": dict(seconds=1800, memory=8 * GB)}
START_SECONDS = 60
NO_START = "its kernel did not start"


@dataclass
class Job:
    """What travels to a worker: a notebook, its parameters and its limits."""

    name: str
    notebook: str  #: the source notebook as JSON text
    parameters: dict = field(default_factory=dict)
    seconds: float = PROFILES["quick"]["seconds"]
    memory: float = PROFILES["quick"]["memory"]
    library: str = ""  #: digest of the paperbook that the results must come from; "" for any


def execute(job: Job) -> dict:
    """Run the notebook; never raises for what happens inside it.

    Returns a dictionary: ``notebook`` (executed, JSON text), ``claims`` (list of dictionaries), ``seconds``,
    ``cpu_seconds``, ``peak_memory`` (bytes) and ``failure``: None, or ``cell`` (its id, "" before the first),
    ``number`` (which code cell, from 1), ``error`` (one line) and ``traceback``.
    """
    if job.library and job.library != cache.library_digest():
        error = "this worker has another version of paperbook than the one the build asks for; install the same one."
        return dict(notebook=job.notebook, claims=[], seconds=0.0, cpu_seconds=0.0, peak_memory=0,
                    failure=dict(cell="", number=0, error=error, traceback=""))
    for name in ("papermill", "nbclient", "traitlets"):  # their messages are said again, better, in `failure`
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    watch, error, traceback = _Watch(job), "", ""
    with tempfile.TemporaryDirectory(prefix="press-", ignore_cleanup_errors=True) as folder:
        output = Path(folder) / "out.ipynb"
        try:
            papermill.execute_notebook(
                nbformat.reads(job.notebook, as_version=4), str(output), parameters=job.parameters, cwd=folder,
                progress_bar=False, kernel_name="python3", start_timeout=START_SECONDS,
                kernel_manager_class=_kernel_manager(folder, watch))
        except papermill.PapermillExecutionError as problem:
            error, traceback = f"{problem.ename}: {problem.evalue}".strip(), "\n".join(problem.traceback)
        except Exception as problem:
            error = watch.why or _kernel_trouble(problem)
        finally:
            watch.stop()
        error = watch.why or error
        executed = nbformat.read(output, as_version=4) if output.exists() else nbformat.reads(job.notebook, 4)
    place = ("", 0) if error.startswith(NO_START) else _where(executed)
    failure = dict(cell=place[0], number=place[1], error=error, traceback=traceback) if error else None
    return dict(notebook=nbformat.writes(executed), claims=claims_of(executed), seconds=time.monotonic() - watch.start,
                cpu_seconds=watch.cpu_seconds, peak_memory=watch.peak_memory, failure=failure)


def claims_of(notebook: nbformat.NotebookNode) -> list[dict]:
    """The claims that a notebook's outputs carry, the last one of each id."""
    found = {output.data[MIME]["id"]: dict(output.data[MIME])
             for cell in cache.code_cells(notebook) for output in cell.outputs if MIME in output.get("data", {})}
    return list(found.values())


class _Watch(threading.Thread):
    """Keeps a kernel within its limits and remembers why it had to be killed."""

    def __init__(self, job: Job):
        super().__init__(daemon=True)
        self.job, self.why, self.kernel = job, "", None
        self.cpu_seconds = self.peak_memory = 0
        self.start = time.monotonic()
        self._over = threading.Event()

    def begin(self, pid: int) -> None:
        self.kernel = psutil.Process(pid)
        threading.Thread.start(self)

    def run(self) -> None:
        while not self._over.wait(0.1):
            try:
                tree = [self.kernel, *self.kernel.children(recursive=True)]
                memory = sum(process.memory_info().rss for process in tree)
                times = self.kernel.cpu_times()
            except psutil.Error:
                return
            self.peak_memory = max(self.peak_memory, memory)
            self.cpu_seconds = sum(times[:4])
            if memory > self.job.memory:
                self._kill(f"used more than its limit of {self.job.memory / GB:.3g} GB of memory")
            elif time.monotonic() - self.start > self.job.seconds:
                self._kill(f"ran longer than its limit of {self.job.seconds:g} s")

    def _kill(self, why: str) -> None:
        self.why = why
        kill_tree(self.kernel)

    def stop(self) -> None:
        """No process of the kernel is left when this returns."""
        self._over.set()
        if self.kernel is not None:
            self.join()
            kill_tree(self.kernel)


def kill_tree(process: psutil.Process, itself: bool = True) -> None:
    """SIGKILL a process and all its descendants, and wait until they are gone."""
    try:
        tree = process.children(recursive=True) + ([process] if itself else [])
    except psutil.NoSuchProcess:
        return
    for member in tree:
        try:
            member.kill()
        except psutil.NoSuchProcess:
            pass
    psutil.wait_procs(tree, timeout=5)


def _kernel_manager(folder: str, watch: _Watch) -> type[AsyncKernelManager]:
    """A manager whose kernels talk over IPC sockets in ``folder``, run for the page, and are watched."""

    class Manager(AsyncKernelManager):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.connection_file = os.path.join(folder, "kernel.json")
            if os.name == "posix":
                self.transport, self.ip = "ipc", os.path.join(folder, "k")

        async def start_kernel(self, **kwargs):
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}  # outputs travel by other ways
            await super().start_kernel(**{**kwargs, **quiet, "env": kernel_environment()})
            watch.begin(self.provisioner.pid)

    return Manager


def kernel_environment() -> dict[str, str]:
    """The environment of a kernel that runs for the page: no sliders or bars, one thread, no tool's warnings."""
    one_thread = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    return {**os.environ, **one_thread, "PAPERBOOK_PRINT": "1", "PYTHONHASHSEED": "0",
            "PYDEVD_DISABLE_FILE_VALIDATION": "1", "JUPYTER_PLATFORM_DIRS": "1"}


def _kernel_trouble(problem: Exception) -> str:
    text = str(problem).strip().splitlines()
    name = type(problem).__name__
    if name == "DeadKernelError":
        return "its kernel was killed from outside, or crashed"
    if name in ("NoSuchKernel", "FileNotFoundError", "TimeoutError") or "Kernel" in str(problem):
        return f"{NO_START} ({text[0] if text else name})"
    return f"{name}: {text[0] if text else 'no message'}"


def _where(notebook: nbformat.NotebookNode) -> tuple[str, int]:
    """Id and number (from 1) of the code cell that was last at work; ("", 0) when none had begun."""
    place, number = ("", 0), 0
    for cell in cache.code_cells(notebook):
        if "injected-parameters" in cell.metadata.get("tags", []):
            continue
        number += 1
        papermill_says = cell.metadata.get("papermill", {})
        if papermill_says.get("exception") or papermill_says.get("status", "pending") != "pending":
            place = (cell.id, number)
        if papermill_says.get("exception"):
            break
    return place
