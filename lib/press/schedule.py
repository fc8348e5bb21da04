"""Many notebooks at once through ``dask.distributed``: a cluster of our own, or one that already runs elsewhere."""
from __future__ import annotations

import json
import logging
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import dask
import psutil

from .errors import PressError
from .execute import Job, execute, kill_tree
from .files import write_atomically

UNKNOWN_SECONDS = 120.0  # a notebook never timed goes among the longest


class Times:
    """How long each notebook took last time, to start the longest first (``_build/times.json``)."""

    def __init__(self, root: Path):
        self.path = root / "_build/times.json"
        try:
            self.seconds = json.loads(self.path.read_text())
        except (OSError, ValueError):
            self.seconds = {}

    def of(self, name: str) -> float:
        return self.seconds.get(name, UNKNOWN_SECONDS)

    def record(self, name: str, seconds: float) -> None:
        self.seconds[name] = round(seconds, 1)
        write_atomically(self.path, json.dumps(self.seconds, indent=1, sort_keys=True))


def run_all(jobs: list[Job], times: Times, *, workers: int | None = None, scheduler: str = "",
            on_start: Callable[[str], None] = lambda name: None) -> Iterator[tuple[Job, dict]]:
    """Execute the jobs and yield (job, result) as each is done; see :func:`press.execute.execute` for the result.

    workers: kernels at a time on this machine (default: one per core). scheduler: the address of a running Dask
    scheduler whose workers take the jobs instead. on_start: called with a job's name when a worker takes it.
    A worker that is lost hands its jobs to the others. Whatever ends this, no process of ours is left behind.
    Raises PressError when the scheduler does not answer.
    """
    if not jobs:
        return
    jobs = sorted(jobs, key=lambda job: -times.of(job.name))
    with _client(min(workers or os.cpu_count() or 1, len(jobs)), scheduler) as client:
        from distributed import as_completed

        waiting, running = list(enumerate(jobs)), {}
        done = as_completed()

        def fill() -> None:
            """Hand out as many jobs as the workers have threads, so that the longest waiting one goes next."""
            while waiting and len(running) < max(1, sum(client.nthreads().values())):
                place, job = waiting.pop(0)
                future = client.submit(execute, job, key=f"{job.name}-{time.time_ns()}", pure=False, retries=3,
                                       priority=-place)
                running[future] = job
                done.add(future)
                on_start(job.name)

        try:
            fill()
            for future in done:
                job = running.pop(future)
                if future.status == "finished":
                    result = future.result()
                    if not result["failure"]:
                        times.record(job.name, result["seconds"])
                else:
                    result = _lost(job, future)
                fill()
                yield job, result
        finally:
            client.cancel(list(running))


def _lost(job: Job, future) -> dict:
    problem = future.exception() if future.status == "error" else future.status
    reason = (str(problem).splitlines() or [type(problem).__name__])[0]
    return dict(notebook=job.notebook, claims=[], seconds=0.0, cpu_seconds=0.0, peak_memory=0,
                failure=dict(cell="", number=0, error=f"no worker finished it ({reason})", traceback=""))


@contextmanager
def _client(workers: int, scheduler: str):
    for name in ("distributed", "tornado", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    from distributed import Client, LocalCluster

    if scheduler:
        try:
            client = Client(scheduler, timeout=10)
        except (OSError, TimeoutError, ValueError) as error:
            reason = (str(error).splitlines() or ["no answer"])[0]
            raise PressError(f"No Dask scheduler answers at {scheduler} ({reason}); "
                             "start one with `dask scheduler` and give its tcp:// address.") from None
        try:
            client.wait_for_workers(1, timeout=30)
            yield client
        except TimeoutError:
            raise PressError(f"The scheduler at {scheduler} has no workers; "
                             f"start one with `dask worker {scheduler}`.") from None
        finally:
            client.close(timeout=5)
        return

    settings = {"distributed.worker.daemon": False, "distributed.nanny.pre-spawn-environ.OMP_NUM_THREADS": 1, "distributed.logging.distributed": "critical"}
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    with tempfile.TemporaryDirectory(prefix="press-dask-", ignore_cleanup_errors=True) as scratch:
        client = cluster = None
        try:
            with dask.config.set(settings), _interrupts_wait():
                cluster = LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, memory_limit=0,
                                       dashboard_address="127.0.0.1:0", silence_logs=logging.CRITICAL + 1,
                                       local_directory=scratch)
                client = Client(cluster)
            yield client
        except BaseException:
            _kill_new_children(before)  # in the middle of a notebook no worker closes politely
            raise
        finally:
            with _silent_threads():
                for part in filter(None, (client, cluster)):
                    with suppress(Exception):
                        part.close(timeout=5)
            _kill_new_children(before)


@contextmanager
def _interrupts_wait():
    """Hold Ctrl-C back while processes start; they inherit the mask, so that their parent alone ends them.

    (A terminal sends Ctrl-C to the whole group of processes.)
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


@contextmanager
def _silent_threads():
    """No tracebacks from Dask's threads about connections that we have cut ourselves."""
    previous, threading.excepthook = threading.excepthook, lambda _: None
    try:
        yield
    finally:
        threading.excepthook = previous


def _kill_new_children(before: set[int]) -> None:
    for child in psutil.Process().children():
        with suppress(psutil.Error):
            # multiprocessing's tracker ends with us, and complains about what it can no longer track
            if child.pid not in before and "resource_tracker" not in " ".join(child.cmdline()):
                kill_tree(child)
