"""Notebooks as text: py:percent and back, with the cell ids kept.

A plain ``jupytext`` round trip gives every cell a new id, which makes each diff a rewrite of the whole file.
Here the id travels in the cell marker (``# %% id="ray-shoot"``), so that text and notebook are the same thing.
"""
from __future__ import annotations

import warnings
from pathlib import Path

import jupytext
import nbformat

from .errors import PressError
from .files import write_atomically

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def to_text(notebook: nbformat.NotebookNode) -> str:
    """The notebook as py:percent text, cell ids in the markers, without outputs."""
    copy = nbformat.from_dict(notebook)
    for cell in copy.cells:
        cell.metadata = {"id": cell.id, **cell.metadata}
    copy.metadata = {"jupytext": {"cell_metadata_filter": "all", "notebook_metadata_filter": "-all"}}
    return jupytext.writes(copy, fmt="py:percent")


def from_text(text: str) -> nbformat.NotebookNode:
    """A clean notebook (no outputs, no counts) from py:percent text written by :func:`to_text`."""
    notebook = jupytext.reads(text, fmt="py:percent")
    notebook.metadata = {"kernelspec": dict(KERNEL), "language_info": {"name": "python"}}
    for cell in notebook.cells:
        cell.id = cell.metadata.pop("id", cell.id)
    return notebook


def read_notebook(path: Path) -> nbformat.NotebookNode:
    """Read a notebook file; ``PressError`` with one plain sentence when it is not a notebook."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what nbformat remarks and mends, `press check` finds
            notebook = nbformat.read(path, as_version=4)
            nbformat.validate(notebook)
    except FileNotFoundError:
        raise PressError(f"{path} does not exist; `press new` makes a chapter's files.") from None
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise PressError(f"{path} is not a readable notebook ({reason}); "
                         "restore it with `git checkout` or save it again from JupyterLab.") from None
    return notebook


def write_notebook(notebook: nbformat.NotebookNode, path: Path) -> None:
    """Write a notebook so that a reader of the file never meets half of it."""
    write_atomically(path, nbformat.writes(notebook, version=4) + "\n")
