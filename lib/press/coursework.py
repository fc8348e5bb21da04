"""Student versions, grading and the gradebook: thin over nbgrader.

Our exercise notebooks are nbgrader sources. Release and grading happen in a temporary course folder, so that a book
needs no nbgrader set-up; what a teacher keeps is the student notebooks and one ``grades.csv``.
"""
from __future__ import annotations

import csv
import io
import logging
import os
import re
import shutil
import sys
import tempfile
import warnings
from pathlib import Path

import nbformat

from .errors import PressError
from .files import write_atomically
from .registry import Registry
from .text import read_notebook

SOLUTION = re.compile(r"^[ \t]*### BEGIN SOLUTION.*?### END SOLUTION[ \t]*$", re.M | re.S)
HIDDEN_BODY = re.compile(r"^[ \t]*### BEGIN HIDDEN TESTS[^\n]*\n(.*?)^[ \t]*### END HIDDEN TESTS", re.M | re.S)
HIDDEN = re.compile(r"^[ \t]*### BEGIN HIDDEN TESTS.*?### END HIDDEN TESTS[ \t]*(\n|\Z)", re.M | re.S)


def for_the_page(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """An exercise notebook as the book shows it: solutions folded, hidden tests and markers left out."""
    page = nbformat.from_dict(notebook)
    for cell in page.cells:
        if cell.cell_type != "code":
            continue
        if cell.metadata.get("nbgrader", {}).get("solution"):
            cell.metadata["tags"] = sorted({*cell.metadata.get("tags", []), "hide-input"})
            cell.metadata["mystnb"] = {"code_prompt_show": "Show the solution", "code_prompt_hide": "Hide the solution"}
        cell.source = re.sub(r"^[ \t]*### (BEGIN|END) SOLUTION[ \t]*\n?", "", HIDDEN.sub("", cell.source), flags=re.M)
        cell.source = cell.source.rstrip()
    return page


def release(root: Path, registry: Registry, slugs: list[str]) -> list[Path]:
    """Write the student versions of the exercises to ``_build/coursework``; returns their paths."""
    papers = [registry[slug] for slug in slugs] if slugs else registry.papers
    released = []
    with tempfile.TemporaryDirectory(prefix="press-course-") as folder:
        api = _course(root, Path(folder), papers)
        for paper in papers:
            _run(api.generate_assignment, paper.slug, what=f"releasing {paper.exercises}")
            made = Path(folder) / "release" / paper.slug / paper.exercises.name
            target = root / "_build/coursework" / paper.exercises.name
            write_atomically(target, made.read_bytes())
            released.append(target)
    return released


def grade(root: Path, registry: Registry, submissions: Path) -> Path:
    """Autograde ``SUBMISSIONS/<student>/<slug>-exercises.ipynb``; returns the path of ``grades.csv``.

    A submission that is not a readable notebook gets no points and a remark; the others are graded all the same.
    Raises PressError when the folder holds no submission.
    """
    found = {paper.slug: (paper, sorted(submissions.glob(f"*/{paper.exercises.name}"))) for paper in registry.papers}
    if not any(files for _, files in found.values()):
        raise PressError(f"{submissions} holds no submissions; put each at {submissions}/<student>/<slug>-exercises.ipynb.")
    rows = []
    with tempfile.TemporaryDirectory(prefix="press-course-") as folder:
        papers = [paper for paper, files in found.values() if files]
        api = _course(root, Path(folder), papers)
        for paper, files in ((paper, files) for paper, files in found.values() if files):
            _run(api.generate_assignment, paper.slug, what=f"preparing {paper.exercises}")
            for file in files:
                rows += _grade_one(api, Path(folder), paper, file)
    text = io.StringIO()
    writer = csv.DictWriter(text, ["student", "chapter", "exercise", "points", "max_points", "remark"])
    writer.writeheader()
    writer.writerows(rows)
    target = submissions / "grades.csv"
    write_atomically(target, text.getvalue())
    return target


def _grade_one(api, folder: Path, paper, file: Path) -> list[dict]:
    student, remark = file.parent.name, ""
    place = folder / "submitted" / student / paper.slug
    place.mkdir(parents=True, exist_ok=True)
    shutil.copy(file, place / file.name)
    try:
        read_notebook(file)
    except PressError:
        remark = "not a readable notebook; ask the student to save and send it again"
    else:
        try:
            _run(api.autograde, paper.slug, student, what=f"grading {file}")
        except PressError as error:
            remark = str(error)
    with warnings.catch_warnings(), api.gradebook as gradebook:
        warnings.simplefilter("ignore")
        points = {}
        if not remark:
            submission = gradebook.find_submission_notebook(file.stem, paper.slug, student)
            points = {grade.name: (grade.score, grade.max_score) for grade in submission.grades}
        most = {cell.name: cell.max_score for cell in gradebook.find_notebook(file.stem, paper.slug).grade_cells}
    rows = [dict(student=student, chapter=paper.slug, exercise=name, points=points.get(name, (0, 0))[0],
                 max_points=points.get(name, (0, high))[1], remark=remark) for name, high in sorted(most.items())]
    total = dict(student=student, chapter=paper.slug, exercise="total", points=sum(r["points"] for r in rows),
                 max_points=sum(r["max_points"] for r in rows), remark=remark)
    return [*rows, total]


def _course(root: Path, folder: Path, papers: list):
    """An nbgrader course in ``folder`` whose assignments are the exercise notebooks of ``papers``."""
    from nbgrader.apps import NbGraderAPI
    from traitlets.config import Config

    for paper in papers:
        source = folder / "source" / paper.slug
        source.mkdir(parents=True)
        shutil.copy(root / paper.exercises, source / paper.exercises.name)
    config = Config()
    config.CourseDirectory.root = str(folder)
    config.CourseDirectory.db_url = f"sqlite:///{folder}/gradebook.db"
    config.ClearSolutions.code_stub = {"python": "raise NotImplementedError()  # your code here"}
    config.ExecutePreprocessor.timeout = 120
    config.ExecutePreprocessor.startup_timeout = 120
    if os.name == "posix":
        config.KernelManager.transport, config.KernelManager.ip = "ipc", str(folder / "k")
    config.Exchange.path_includes_course = False
    here = str(Path(sys.executable).parent)  # nbgrader calls alembic by name
    if here not in os.environ["PATH"].split(os.pathsep):
        os.environ["PATH"] = here + os.pathsep + os.environ["PATH"]
    logging.getLogger("traitlets").setLevel(logging.CRITICAL + 1)
    return NbGraderAPI(config=config)


def _run(step, *arguments, what: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SQLAlchemy's remarks on nbgrader's own code
        result = step(*arguments, force=True)
    if not result["success"]:
        log = (result.get("log") or result.get("error") or "").strip().splitlines()
        reason = next((line for line in reversed(log) if "Error" in line), log[-1] if log else "no reason given")
        raise PressError(f"nbgrader failed while {what}: {reason.strip()}")
