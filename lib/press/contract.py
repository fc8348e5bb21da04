"""What every chapter must have, checked in seconds without running anything.

Each finding names the file, the cell and the remedy.
"""
from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
import yaml

from . import coursework
from .cache import code_cells
from .errors import PressError
from .registry import Paper, Registry, load
from .text import read_notebook, write_notebook

SECTIONS = ["The idea in one minute", "The problem, seen", "The method", "Does it work?", "Play with it", "Claims",
            "What this chapter cannot show", "Exercises", "Further reading"]
PARAMETERS = 'seed = 0\nprofile = "quick"'
BOOTSTRAP = '''try:
    import paperbook
except ModuleNotFoundError:  # on Colab: fetch the book's small library; torch and numpy stay as they are
    import subprocess, sys
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "git+{url}@{branch}"], check=True)
    import paperbook'''
CELL_LINES, LINE_LENGTH, MIN_FIGURES, MIN_EXERCISES, MIN_ASSERTS = 25, 100, 4, 3, 6
FORBIDDEN_IMPORTS = ("press", "myst_nb", "jupyter_book", "sphinx", "papermill")
FORBIDDEN_WORDS = re.compile(r"\b(simply|obviously|trivially|easy to see|needless to say)\b", re.I)


@dataclass(frozen=True)
class Finding:
    file: str
    cell: str
    problem: str
    remedy: str

    def __str__(self) -> str:
        place = f"{self.file}, cell {self.cell}" if self.cell else self.file
        return f"{place}: {self.problem}; {self.remedy}."


def repository(root: Path) -> tuple[str, str]:
    """The address and the branch in ``_config.yml``."""
    config = yaml.safe_load((root / "_config.yml").read_text("utf-8"))["repository"]
    return config["url"], config.get("branch", "main")


def bootstrap(root: Path) -> str:
    """The first code cell of every notebook."""
    url, branch = repository(root)
    return BOOTSTRAP.format(url=url, branch=branch)


def check(root: Path, registry: Registry | None = None) -> list[Finding]:
    """All findings of the book at ``root``."""
    registry = registry or load(root)
    findings = list(_house(root, registry))
    for paper in registry.papers:
        for path, checks in ((paper.notebook, _chapter), (paper.exercises, _exercises)):
            try:
                notebook = read_notebook(root / path)
            except PressError as error:
                findings.append(Finding(str(path), "", str(error).rstrip("."), "a chapter needs this file"))
                continue
            findings += _common(root, path, notebook)
            findings += checks(root, paper, notebook)
        if not (root / paper.tests).is_file():
            findings.append(Finding(str(paper.tests), "", "the chapter has no tests", "write property tests and mutants"))
    return findings


def fix(root: Path, registry: Registry | None = None) -> list[Path]:
    """Put right what needs no thought: bootstrap cells, paper boxes, outputs and counts. Returns the files changed."""
    changed = []
    for paper in (registry or load(root)).papers:
        for path in (paper.notebook, paper.exercises):
            notebook = read_notebook(root / path)
            before = nbformat.writes(notebook)
            for cell in notebook.cells:
                if cell.id == "paper-box":
                    cell.source = paper.box()
                if cell.cell_type == "code":
                    cell.outputs, cell.execution_count = [], None
                    if "bootstrap" in cell.metadata.get("tags", []):
                        cell.source = bootstrap(root)
            if nbformat.writes(notebook) != before:
                write_notebook(notebook, root / path)
                changed.append(path)
    return changed


def _house(root: Path, registry: Registry) -> Iterator[Finding]:
    toc = (root / "_toc.yml").read_text("utf-8") if (root / "_toc.yml").is_file() else ""
    listed = {registry_path for paper in registry.papers for registry_path in (paper.notebook, paper.exercises)}
    for path in sorted(listed):
        if path.with_suffix("").as_posix() not in re.findall(r"file:\s*(\S+)", toc):
            yield Finding("_toc.yml", "", f"{path} is not in the table of contents", "add it under its part")
    for path in sorted((root / "notebooks").rglob("*.ipynb")):
        path = path.relative_to(root)
        if path not in listed and ".ipynb_checkpoints" not in path.parts:
            yield Finding(str(path), "", "the registry does not know this notebook",
                          "add its paper to book/papers.yml or remove the file")


def _common(root: Path, path: Path, notebook) -> Iterator[Finding]:
    def found(cell, problem, remedy):
        return Finding(str(path), getattr(cell, "id", ""), problem, remedy)

    ids = [cell.get("id") for cell in json.loads((root / path).read_text("utf-8"))["cells"]]  # nbformat would mend them
    for id in sorted({str(id) for id in ids if ids.count(id) > 1 or not id}):
        yield Finding(str(path), id, "its id is used twice or missing", "give each cell an id of its own")
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            word = FORBIDDEN_WORDS.search(cell.source)
            if word:
                yield found(cell, f"the text says {word[0]!r}", "what is easy needs no such word; take it out")
            continue
        if cell.outputs or cell.execution_count is not None:
            yield found(cell, "it has outputs or a count", "run `press check --fix`")
        for module in _imports(cell.source):
            if module.split(".")[0] in FORBIDDEN_IMPORTS:
                yield found(cell, f"it imports {module}", "a notebook imports paperbook alone, and runs on Colab")
    first = next(iter(code_cells(notebook)), None)
    if first is None or "bootstrap" not in first.metadata.get("tags", []) or first.source != bootstrap(root):
        yield found(first, "the first code cell is not the bootstrap cell",
                    "tag it bootstrap and run `press check --fix`")
    elif "remove-cell" not in first.metadata.tags:
        yield found(first, "the bootstrap cell would show on the page", "tag it remove-cell")


def _chapter(root: Path, paper: Paper, notebook) -> Iterator[Finding]:
    def found(cell, problem, remedy):
        return Finding(str(paper.notebook), getattr(cell, "id", ""), problem, remedy)

    cells, code = notebook.cells, code_cells(notebook)
    source = "\n".join(cell.source for cell in code)
    if not cells[0].source.startswith(f"# {paper.chapter}\n"):
        yield found(cells[0], "its title is not the registry's", f"begin with '# {paper.chapter}' and one line below")
    box = next((cell for cell in cells if cell.id == "paper-box"), None)
    if box is None or box.source != paper.box():
        yield found(box, "the box of the paper is missing or old", "give a cell the id paper-box and run `press check --fix`")
    if len(code) < 2 or code[1].source != PARAMETERS or code[1].metadata.get("tags") != ["parameters"]:
        yield found(code[1] if len(code) > 1 else None, "the second code cell is not the parameters cell",
                    f"tag it parameters, with exactly {PARAMETERS!r}")
    headings = [line[3:].strip() for cell in cells if cell.cell_type == "markdown"
                for line in cell.source.splitlines() if line.startswith("## ")]
    if headings != SECTIONS:
        missing = [name for name in SECTIONS if name not in headings] or ["the right order"]
        yield found(None, f"its sections are {headings}; missing: {', '.join(missing)}",
                    f"the sections are {', '.join(SECTIONS)}")
    for before, cell in zip(cells, cells[1:]):
        if cell.cell_type == before.cell_type == "code" and cell not in code[1:4]:
            yield found(cell, "no sentence stands between it and the code before", "say what comes")
    for cell in code:
        lines = len(cell.source.splitlines())
        if lines > CELL_LINES:
            yield found(cell, f"it has {lines} lines", f"split it; {CELL_LINES} lines are the limit")
        longest = max(map(len, cell.source.splitlines()), default=0)
        if longest > LINE_LENGTH and cell is not code[0]:
            yield found(cell, f"a line of {longest} characters runs off the page", f"wrap it; {LINE_LENGTH} are the limit")
    for name, least in (("show", MIN_FIGURES), ("explore", 1)):
        calls = len(re.findall(rf"^\s*{name}\(", source, re.M))
        if calls < least:
            yield found(None, f"it calls {name}() {calls} times", f"a chapter has at least {least}")
    if len(re.findall(r"^\s*assert ", source, re.M)) < MIN_ASSERTS:
        yield found(None, "it asserts too little", f"assert at least {MIN_ASSERTS} facts")
    yield from _claims(paper, code, found)
    cited = set(re.findall(r"\{cite(?::\w+)?\}`([^`]+)`", "\n".join(cell.source for cell in cells)))
    bib = (root / "book/references.bib").read_text("utf-8")
    for key in sorted({key.strip() for keys in cited for key in keys.split(",")}):
        if not re.search(rf"^@\w+\{{{re.escape(key)},", bib, re.M):
            yield found(None, f"it cites {key}, which book/references.bib lacks", "add the entry")


def _claims(paper: Paper, code, found) -> Iterator[Finding]:
    seen = {}
    for cell in code:
        for call in ast.walk(_tree(cell.source)):
            name = getattr(getattr(call, "func", None), "attr", "")
            if name in ("claim", "out_of_reach") and call.args and isinstance(call.args[0], ast.Constant):
                seen[call.args[0].value] = cell
                given = {keyword.arg for keyword in call.keywords}
                for value in {"claim": ("measured", "control", "holds", "criterion"), "out_of_reach": ("needs",)}[name]:
                    if value not in given:
                        yield found(cell, f"claim {call.args[0].value} has no {value}=", "give it")
                for keyword in call.keywords:
                    if keyword.arg in ("measured", "control") and isinstance(keyword.value, ast.Constant):
                        yield found(cell, f"{keyword.arg} of claim {call.args[0].value} is a constant",
                                    "let the notebook measure it")
    for id in sorted(set(paper.claims) ^ set(seen)):
        where, remedy = (("the registry", "book/papers.yml") if id in seen else ("the notebook", "a chapter.claim"))
        yield found(seen.get(id), f"claim {id} is missing in {where}", f"add it to {remedy}")


def _exercises(root: Path, paper: Paper, notebook) -> Iterator[Finding]:
    def found(cell, problem, remedy):
        return Finding(str(paper.exercises), getattr(cell, "id", ""), problem, remedy)

    graded = [cell for cell in code_cells(notebook) if cell.metadata.get("nbgrader", {}).get("grade")]
    solutions = [cell for cell in code_cells(notebook) if cell.metadata.get("nbgrader", {}).get("solution")]
    if len(solutions) < MIN_EXERCISES:
        yield found(None, f"it has {len(solutions)} exercises", f"a chapter has at least {MIN_EXERCISES}")
    for cell in solutions:
        if not coursework.SOLUTION.search(cell.source):
            yield found(cell, "its solution is not between the markers", "use ### BEGIN SOLUTION and ### END SOLUTION")
    for cell in graded:
        if not coursework.HIDDEN.search(cell.source):
            yield found(cell, "it has no hidden tests", "put some between ### BEGIN HIDDEN TESTS and ### END HIDDEN TESTS")
        if not cell.metadata.nbgrader.get("points"):
            yield found(cell, "it gives no points", "set `points` in its nbgrader metadata")
    ids = [cell.metadata.nbgrader.get("grade_id") for cell in graded + solutions]
    for id in sorted({str(id) for id in ids if ids.count(id) > 1}):
        yield found(None, f"the grade_id {id} is used twice", "nbgrader needs each one to be unique")


def _tree(source: str) -> ast.AST:
    try:
        return ast.parse(source)
    except SyntaxError:
        return ast.Module(body=[], type_ignores=[])


def _imports(source: str) -> Iterator[str]:
    for node in ast.walk(_tree(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
