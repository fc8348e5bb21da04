"""Results by content: a notebook is executed again only when what decides its outputs has changed.

The key covers the code cells, the parameters, the source of ``lib/paperbook``, the versions of the pinned packages and
Python's minor version. Prose is not in it: a prose edit shows on the page with nothing executed.
"""
from __future__ import annotations

import hashlib
import json
import re
import sys
from functools import lru_cache
from importlib import metadata
from pathlib import Path

import nbformat
import paperbook

from .files import write_atomically


def library_digest() -> str:
    """A digest of the source of ``paperbook`` as it is installed here."""
    folder = Path(paperbook.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.suffix in {".py", ".js"}):
        digest.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


@lru_cache
def versions(root: Path) -> dict[str, str]:
    """Python's minor version and the installed versions of what ``requirements.txt`` pins."""
    found = {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}
    requirements = root / "requirements.txt"
    for line in requirements.read_text().splitlines() if requirements.exists() else []:
        name = re.match(r"[A-Za-z0-9_.-]+", line)
        if name:
            try:
                found[name[0]] = metadata.version(name[0])
            except metadata.PackageNotFoundError:
                found[name[0]] = "missing"
    return found


def code_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def key(notebook: nbformat.NotebookNode, parameters: dict, root: Path) -> str:
    """The content address of an execution."""
    facts = [[cell.source for cell in code_cells(notebook)], parameters, library_digest(), versions(root)]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


class Cache:
    """Executed notebooks under ``_build/cache``, one file per notebook, profile and key."""

    def __init__(self, root: Path):
        self.folder = root / "_build/cache"
        self.broken: list[Path] = []  #: files found damaged, to be named and made again

    def path(self, name: str, key: str) -> Path:
        return self.folder / f"{name}-{key[:20]}.json"

    def get(self, name: str, key: str) -> dict | None:
        """The stored result, or None; a damaged file is removed and remembered in ``broken``."""
        path = self.path(name, key)
        try:
            stored = json.loads(path.read_bytes())
            if stored["key"] == key and stored["digest"] == _digest(stored["result"]):
                return stored["result"]
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError):
            pass
        self.broken.append(path)
        path.unlink(missing_ok=True)
        return None

    def put(self, name: str, key: str, result: dict) -> None:
        """Store a result and drop the older ones of the same name."""
        write_atomically(self.path(name, key), json.dumps(
            {"key": key, "digest": _digest(result), "result": result}))
        for old in self.folder.glob(f"{name}-{'?' * 20}.json"):
            if old != self.path(name, key):
                old.unlink(missing_ok=True)


def _digest(result: dict) -> str:
    return hashlib.sha256(json.dumps(result, sort_keys=True).encode()).hexdigest()
