"""The same work on a cluster that somebody else started, whose workers share no folder with us."""
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from conftest import CLAIM


@pytest.fixture
def cluster(tmp_path):
    """A `dask scheduler` and two `dask worker` processes, each in an empty folder of its own."""
    started = []

    def start(name: str, *arguments: str) -> subprocess.Popen:
        folder = tmp_path / name
        folder.mkdir()
        process = subprocess.Popen([sys.executable, "-m", "dask", *arguments], cwd=folder, start_new_session=True,
                                   stdout=subprocess.DEVNULL, stderr=(folder / "log").open("w"))
        started.append(process)
        return process

    scheduler_file = tmp_path / "scheduler.json"
    start("scheduler", "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
          "--scheduler-file", str(scheduler_file))
    for _ in range(300):
        if scheduler_file.exists() and scheduler_file.read_text():
            break
        time.sleep(0.1)
    address = json.loads(scheduler_file.read_text())["address"]
    workers = [start(f"worker-{i}", "worker", address, "--nthreads", "1", "--no-dashboard", "--no-nanny")
               for i in range(2)]
    yield address, workers
    for process in started:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()


def test_a_sweep_survives_the_loss_of_a_worker(book, cluster):
    address, workers = cluster
    book.add("one", CLAIM, "import os, time\ntime.sleep(3)\nprint(os.getcwd())")
    book.add("two", "print(seed)")
    sweep = book.start("sweep", "--seeds", "0-3", "--scheduler", address)
    for line in sweep.stdout:
        if "running" in line:
            break
    time.sleep(1)
    os.killpg(workers[0].pid, signal.SIGKILL)
    out, err = sweep.communicate(timeout=180)
    assert sweep.returncode == 0, err
    assert "one C1: 4 reproduced; median 1.015, 1 to 1.03" in out
    content = json.loads((book.root / "book/reproduction.json").read_text())
    assert content["seeds"] == [0, 1, 2, 3] and content["versions"]["numpy"]
    assert content["chapters"]["one"]["C1"]["runs"] == content["chapters"]["one"]["C1"]["held"] == 4
    assert workers[1].poll() is None, "the cluster is not ours to end"
    stored = [path.name for path in (book.root / "_build/cache").glob("*.json")]
    assert sum(name.startswith("one-quick") for name in stored) == sum(name.startswith("two-quick") for name in stored) == 4

    code, out, err = book.press("sweep", "--seeds", "0-4", "--scheduler", address)
    assert code == 0 and out.count("done in") == 2, "what is known is not run again"


def test_a_worker_with_another_library_says_so():
    from press.execute import Job, execute

    result = execute(Job("one", json.dumps(dict(cells=[], metadata={}, nbformat=4, nbformat_minor=5)), library="other"))
    assert "another version of paperbook" in result["failure"]["error"]
