"""Shared by all tests: the root, a small book to break, and the real book printed once."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import uuid
from pathlib import Path

import nbformat
import psutil
import pytest
import yaml
from hypothesis import settings
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

ROOT = Path(__file__).parents[1]

settings.register_profile("book", deadline=None)  # a busy machine is no counterexample
settings.load_profile("book")

CLAIM = """from IPython.display import display
from paperbook.claims import judge
display(judge("C1", "x stays small", paper="0", measured=1 + seed / 100, control=5, holds=lambda x: x < 2, criterion="x < 2"))"""


def notebook(*cells: str) -> nbformat.NotebookNode:
    """A notebook from cell sources; a source that begins with # and a space is prose, the first code is parameters."""
    made = new_notebook(metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}})
    for number, source in enumerate(cells):
        make = new_markdown_cell if source.startswith("# ") else new_code_cell
        made.cells.append(make(source, id=f"cell-{number}"))
    first = next((cell for cell in made.cells if cell.cell_type == "code"), None)
    if first is not None:
        first.metadata["tags"] = ["parameters"]
    return made


class Book:
    """A small book in a folder of its own, driven through the command line as a user would."""

    def __init__(self, root: Path):
        self.root = root
        self.mark = f"PRESS_TEST_{uuid.uuid4().hex}"
        (root / "book/_static").mkdir(parents=True)
        shutil.copytree(ROOT / "book/_static", root / "book/_static", dirs_exist_ok=True)
        (root / "book/references.bib").write_text("")
        (root / "book/intro.md").write_text("# A small book\n\nIt is here to be broken.\n")
        (root / "requirements.txt").write_text("numpy\n")
        shutil.copy(ROOT / "_config.yml", root / "_config.yml")
        self.papers: list[dict] = []
        self._write()

    def add(self, slug: str, *cells: str, claims: dict | None = None) -> None:
        """A chapter whose notebook has a title, a parameters cell and ``cells``."""
        self.papers.append(dict(
            slug=slug, title=slug, chapter=slug.title(), authors=["A. Author"], venue="ICML 2026", arxiv="", code="",
            part="language-models", level=1, minutes=1, prerequisites=["nothing"], summary="A chapter.",
            claims=claims or {}, timed=[]))
        self.put(slug, f"# {slug.title()}", 'seed = 0\nprofile = "quick"', *cells)
        self.put(f"{slug}-exercises", f"# Exercises of {slug}", "answer = 42")
        self._write()

    def put(self, name: str, *cells: str) -> None:
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook(*cells), path)

    def path(self, name: str) -> Path:
        return self.root / "notebooks/language-models" / f"{name}.ipynb"

    def _write(self) -> None:
        (self.root / "book/papers.yml").write_text(yaml.safe_dump(dict(
            parts=[dict(id="language-models", title="Language models")], papers=self.papers)))
        chapters = [dict(file=f"notebooks/language-models/{p['slug']}{tail}") for p in self.papers
                    for tail in ("", "-exercises")]
        (self.root / "_toc.yml").write_text(yaml.safe_dump(dict(
            format="jb-book", root="book/intro", parts=[dict(caption="All", chapters=chapters)] if chapters else [])))

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen:
        return subprocess.Popen([sys.executable, "-m", "press", *arguments], cwd=self.root, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                                env={**os.environ, self.mark: "1", "PYTHONUNBUFFERED": "1", **environment})

    def press(self, *arguments: str, timeout: float = 240, **environment: str):
        """Run ``press``; returns (exit code, stdout, stderr)."""
        process = self.start(*arguments, **environment)
        out, err = process.communicate(timeout=timeout)
        return process.returncode, out, err

    def processes(self) -> list[str]:
        """Command lines of processes that a run of this book has left behind."""
        time.sleep(1.5)  # a kernel notices within a second that its parent is gone
        left = []
        for process in psutil.process_iter():
            try:
                if self.mark in process.environ() and process.status() != psutil.STATUS_ZOMBIE:
                    left.append(" ".join(process.cmdline()))
            except psutil.Error:
                pass
        return left


@pytest.fixture
def book(tmp_path) -> Book:
    return Book(tmp_path / "book-to-break")


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def printed() -> Path:
    """The real book, built once with every chapter executed through papermill; the folder of its pages."""
    run = subprocess.run([sys.executable, "-m", "press", "build"], cwd=ROOT, text=True, capture_output=True)
    assert run.returncode == 0, f"press build failed:\n{run.stdout[-4000:]}\n{run.stderr[-8000:]}"
    return ROOT / "_build/html"
