"""What goes wrong in the middle of a build: each gives a clear error, harms nothing else, and leaves no process."""
import json
import os
import re
import signal
import time

from conftest import CLAIM
from press.cache import Cache
from test_build import executed

KILLED = "import os, signal, time\nos.kill(os.getpid(), signal.SIGKILL)\ntime.sleep(60)"
ENDLESS = "while True:\n    pass"
HOG = "hoard = []\nwhile True:\n    hoard.append(b'x' * 20_000_000)"


def test_one_failure_stops_no_other(book):
    book.add("killed", KILLED)
    book.add("endless", ENDLESS)
    book.add("wrong", "print('before')", "def half(x):\n    return x / 0\nhalf(1)", "print('after')")
    book.add("hog", HOG)
    book.add("good", CLAIM, claims={"C1": "reproduced"})
    begun = time.monotonic()
    code, out, err = book.press("build", "--time-limit", "12", "--memory-limit", "500")
    assert code == 1 and time.monotonic() - begun < 120
    for slug, cell, words in [("killed", "cell-2", "its kernel was killed from outside, or crashed"),
                              ("endless", "cell-2", "ran longer than its limit of 12 s"),
                              ("wrong", "cell-3", "ZeroDivisionError: division by zero"),
                              ("hog", "cell-2", "used more than its limit of 0.5 GB of memory")]:
        report = re.search(rf"FAILED \S+{slug}\.ipynb\n(.*)", err)
        assert report and cell in report[1] and words in report[1], (slug, err)
    assert "return x / 0" in err, "the traceback is shown"
    assert "4 failed" in out and "The book was not printed." in err
    assert not (book.root / "_build/html").exists()
    assert book.processes() == []

    for slug in ("killed", "endless", "wrong", "hog"):
        book.put(slug, f"# {slug}", "seed = 0", "print('mended')")
    code, out, err = book.press("build")
    assert (code, executed(out)) == (0, 4), "the next build executes what failed, and nothing else"


def test_a_kernel_that_never_starts(book):
    book.add("one", "print(seed)")
    spec = book.root / "jupyter/kernels/python3"
    spec.mkdir(parents=True)
    (spec / "kernel.json").write_text(json.dumps(
        {"argv": ["/bin/false"], "display_name": "dead", "language": "python"}))
    begun = time.monotonic()
    code, out, err = book.press("build", JUPYTER_PATH=str(spec.parents[1]))
    assert code == 1 and time.monotonic() - begun < 60
    assert "before the first cell: its kernel did not start" in err
    assert book.processes() == []


def test_ctrl_c_leaves_no_process_and_a_whole_cache(book):
    book.add("short", "print('done')")
    for name in ("long", "longer"):
        book.add(name, "import time\nprint('asleep')\ntime.sleep(120)")
    (book.root / "_build").mkdir()
    (book.root / "_build/times.json").write_text('{"short": 300, "long": 1, "longer": 1}')  # short goes first
    process = book.start("build", "--jobs", "2")
    for line in process.stdout:
        if line.startswith(("long: running", "longer: running")):
            break
    time.sleep(4)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the whole group
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "press: stopped" in err and "Traceback" not in err, err
    assert book.processes() == []
    store = Cache(book.root)
    stored = list(store.folder.glob("*.json"))
    assert any(path.name.startswith("short-") for path in stored)
    for path in stored:
        whole = json.loads(path.read_text())
        assert store.get(path.stem[:-21], whole["key"]) is not None
    assert store.broken == []
    assert not list(book.root.rglob(".*.json.*")), "no temporary file is left"


def test_a_damaged_cache_file_is_named_and_made_again(book):
    book.add("one", "print('one')")
    book.add("two", "print('two')")
    assert book.press("build")[0] == 0
    victims = sorted((book.root / "_build/cache").glob("*.json"))[:2]
    victims[0].write_bytes(victims[0].read_bytes()[:100])  # cut short
    text = victims[1].read_text()
    victims[1].write_text(text.replace("print", "paint", 1))  # still JSON, but not what was stored
    code, out, err = book.press("build")
    assert (code, executed(out)) == (0, 2), err
    for victim in victims:
        assert f"The cache file _build/cache/{victim.name} was damaged" in out


def test_two_builds_at_once_do_not_harm_each_other(book):
    book.add("one", "import time; time.sleep(3); print('one')")
    book.add("two", "print('two')")
    builds = [book.start("build"), book.start("build")]
    outs = [build.communicate(timeout=240) for build in builds]
    assert [build.returncode for build in builds] == [0, 0], outs
    assert sorted(executed(out) for out, _ in outs) == [0, 4], "the second finds the work of the first"
    assert sum("Another build is at work" in out for out, _ in outs) == 1
    assert (book.root / "_build/html/index.html").exists()
    assert book.processes() == []
