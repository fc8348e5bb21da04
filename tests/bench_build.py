"""How fast is the press? Prints, in one run: a cold build and its CPU bound, Jupyter Book's own serial execution of the
same notebooks, a build with nothing changed, and one after a prose edit. Not a test: `.venv/bin/python tests/bench_build.py`.
"""
from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]


def timed(*command: str, folder: Path) -> tuple[float, str]:
    begun = time.monotonic()
    done = subprocess.run(command, cwd=folder, text=True, capture_output=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return time.monotonic() - begun, done.stdout


def main() -> None:
    press, cores = (sys.executable, "-m", "press", "build"), os.cpu_count()
    with tempfile.TemporaryDirectory(prefix="press-bench-") as name:
        folder = Path(name) / "book"
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".venv", "_build", ".git", "__pycache__"))
        cold, _ = timed(*press, folder=folder)
        cpu = sum(json.loads(path.read_text())["result"]["cpu_seconds"]
                  for path in (folder / "_build/cache").glob("*.json"))
        longest = max(json.loads((folder / "_build/times.json").read_text()).values())
        print(f"cold build:               {cold:6.1f} s wall")
        print(f"kernels' CPU / {cores} cores:   {cpu / cores:6.1f} s (sum {cpu:.1f} s, longest notebook {longest:.1f} s)")
        warm, _ = timed(*press, folder=folder)
        print(f"nothing changed:          {warm:6.1f} s wall")
        intro = folder / "book/intro.md"
        intro.write_text(intro.read_text() + "\nOne more sentence.\n")
        prose, _ = timed(*press, folder=folder)
        print(f"one page of prose edited: {prose:6.1f} s wall")
        printing = cold - max(cpu / cores, longest)
        print(f"cold / CPU bound:         {cold / (cpu / cores):6.2f} (the rest, {printing:.1f} s, starts workers and prints the pages)")

        serial = Path(name) / "serial"
        shutil.copytree(folder / "_build/stage", serial)
        for notebook in (ROOT / "notebooks").glob("*/*.ipynb"):
            shutil.copy(notebook, serial / notebook.relative_to(ROOT))
        config = serial / "_config.yml"
        config.write_text(re.sub(r'execute_notebooks: "off"', "execute_notebooks: force\n  timeout: 600", config.read_text()))
        os.environ.update(PAPERBOOK_PRINT="1", OMP_NUM_THREADS="1")
        own, _ = timed(sys.executable, "-c", "from jupyter_book.cli.main import main; main()", "build", ".", folder=serial)
        print(f"Jupyter Book, serially:   {own:6.1f} s wall")


if __name__ == "__main__":
    main()
