"""Executed notebooks and prose become pages: a staging folder, Jupyter Book, a look at what came out."""
from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat

from . import cache, coursework, scoreboard
from .files import plain, write_atomically
from .registry import Registry

PAGE_BYTES = 1_500_000
UNPRINTED = "```{note}\nThis chapter was not executed in this build, so its figures and numbers are missing.\n```"
STAMP = ".press-stamp"


def print_book(root: Path, registry: Registry, units: list, say) -> tuple[Path | None, list[str]]:
    """Print the book to ``_build/html``; returns its folder (None when it failed) and the warnings.

    The new book replaces the last good one only when it is whole and without a warning.
    """
    stage, html = root / "_build/stage", root / "_build/html"
    files = staged_files(root, registry, units)
    stamp = _digest(files, root)
    if (html / STAMP).is_file() and (html / STAMP).read_text() == stamp:
        say("Nothing on the pages has changed.")
        return html, []
    say("Printing the pages ...")
    everything = _write_stage(stage, files)
    printed, warnings = _jupyter_book(root, stage, everything=everything)
    warnings += page_problems(printed) if not warnings else []
    if warnings:
        shutil.rmtree(root / "_build/sphinx", ignore_errors=True)  # or the next run would not repeat them
        return None, warnings
    new, old = root / "_build/html.new", root / "_build/html.old"
    for folder in (new, old):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(printed, new)
    (new / STAMP).write_text(stamp)
    if html.exists():
        os.replace(html, old)
    os.replace(new, html)
    shutil.rmtree(old, ignore_errors=True)
    return html, []


def staged_files(root: Path, registry: Registry, units: list) -> dict[str, bytes]:
    """Everything that Jupyter Book reads: path below the stage -> content."""
    files = {name: (root / name).read_bytes() for name in ("_config.yml", "_toc.yml")}
    for path in sorted((root / "book").rglob("*")):
        if path.is_file() and path.suffix not in {".yml", ".json"}:
            files[path.relative_to(root).as_posix()] = path.read_bytes()
    for unit in units:
        page = with_outputs(unit.notebook, unit.result)
        if unit.is_chapter:
            fold_the_setup(page)
        else:
            page = coursework.for_the_page(page)
        files[unit.path.as_posix()] = nbformat.writes(page).encode()
        thumbnail = _thumbnail(page) if unit.is_chapter else ""
        if thumbnail:
            files[f"book/_static/thumbs/{unit.name}.svg"] = thumbnail.encode()
    claims = {unit.paper.slug: unit.result["claims"] for unit in units if unit.is_chapter and unit.result}
    files |= scoreboard.pages(root, registry, claims, files)
    return files


def with_outputs(notebook: nbformat.NotebookNode, result: dict | None) -> nbformat.NotebookNode:
    """The notebook as it is now, prose and all, with the outputs of the execution of the same code."""
    page = nbformat.from_dict(notebook)
    if result is None:
        page.cells.insert(1, nbformat.v4.new_markdown_cell(UNPRINTED, id="unprinted"))
        return page
    executed = [cell for cell in cache.code_cells(nbformat.reads(result["notebook"], as_version=4))
                if "injected-parameters" not in cell.metadata.get("tags", [])]
    for cell, done in zip(cache.code_cells(page), executed, strict=True):
        cell.outputs, cell.execution_count = done.outputs, done.execution_count
    return page


def fold_the_setup(page: nbformat.NotebookNode) -> None:
    """Parameters, imports and settings before the first section become one folded cell: a page begins with its idea."""
    start = next((i for i, cell in enumerate(page.cells)
                  if cell.cell_type == "markdown" and re.search(r"^## ", cell.source, re.M)), 0)
    setup = [cell for cell in page.cells[:start]
             if cell.cell_type == "code" and "remove-cell" not in cell.metadata.get("tags", [])]
    if setup and not any(cell.outputs for cell in setup):
        setup[0].source = "\n\n".join(cell.source for cell in setup)
        setup[0].metadata["tags"] = ["hide-input"]
        setup[0].metadata["mystnb"] = {"code_prompt_show": "Show the set-up", "code_prompt_hide": "Hide the set-up"}
        page.cells = [cell for cell in page.cells if cell not in setup[1:]]


def _thumbnail(page: nbformat.NotebookNode) -> str:
    """The first figure of a chapter as a file of its own, in fixed ink."""
    from paperbook.plots import INK

    for cell in cache.code_cells(page):
        for output in cell.outputs:
            html = "".join(output.get("data", {}).get("text/html", ""))
            figure = re.search(r'<figure class="pb-figure".*?(<svg.*?</svg>)', html, re.S)
            if figure:
                return figure[1].replace("currentColor", INK)
    return ""


def _digest(files: dict[str, bytes], root: Path) -> str:
    digest = hashlib.sha256(repr(sorted(cache.versions(root).items())).encode())
    for name in sorted(files):
        digest.update(name.encode() + hashlib.sha256(files[name]).digest())
    return digest.hexdigest()


def _write_stage(stage: Path, files: dict[str, bytes]) -> bool:
    """Bring the staging folder up to date, touching only what differs. True when that concerns every page."""
    present = {path.relative_to(stage).as_posix() for path in stage.rglob("*") if path.is_file()}
    for name in present - set(files):
        (stage / name).unlink()
    changed = {name for name, content in files.items()
               if name not in present or (stage / name).read_bytes() != content}
    for name in changed:
        write_atomically(stage / name, files[name])
    pages = {name for name in present ^ set(files) if name.endswith((".md", ".ipynb"))}
    everywhere = {name for name in changed  # Sphinx copies styles only when it writes a page
                  if name.endswith((".css", ".js")) or name in ("_config.yml", "_toc.yml", "book/references.bib")}
    return bool(pages or everywhere)


def _jupyter_book(root: Path, stage: Path, everything: bool) -> tuple[Path, list[str]]:
    output = root / "_build/sphinx"
    command = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()", "build", str(stage), "--path-output", str(output),
               "-n", "-W", "--keep-going", *(["--all"] if everything else [])]
    run = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         env={**os.environ, "NO_COLOR": "1", "PYTHONWARNINGS": "ignore"})
    log = plain(run.stdout)
    write_atomically(root / "_build/jupyter-book.log", log)
    warnings = [line.replace(f"{stage}/", "") for line in log.splitlines() if re.search(r"WARNING:|ERROR:", line)]
    if run.returncode and not warnings:
        warnings = [f"Jupyter Book failed; its last words are in _build/jupyter-book.log: {log.strip().splitlines()[-1]}"]
    return output / "_build/html", warnings


def page_problems(html: Path) -> list[str]:
    """Pages that are too heavy, or that would ask another host for a script, a style or a picture."""
    problems = []
    for page in sorted(html.rglob("*.html")):
        name, text = page.relative_to(html), page.read_text("utf-8")
        if len(text.encode()) > PAGE_BYTES:
            problems.append(f"{name} weighs {len(text.encode()) / 1e6:.2f} MB; {PAGE_BYTES / 1e6} MB is the limit")
        for tag in re.findall(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"(?:https?:)?//[^\"]+\"|"
                              r"<link\b[^>]*\brel=\"stylesheet\"[^>]*\bhref=\"(?:https?:)?//[^\"]+\"", text):
            problems.append(f"{name} loads from another host: {tag[:150]}")
    return problems
