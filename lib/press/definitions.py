"""The code on the page as the code under test: a chapter's definitions without its experiments."""
from __future__ import annotations

import ast
import sys
from pathlib import Path
from types import ModuleType

from . import registry, text


def definitions(slug: str, root: Path | None = None) -> ModuleType:
    """A module with the imports, functions, classes and constants of a chapter's notebook.

    Runs only the cells whose syntax tree holds nothing else. A constant is an assignment to names in capitals.
    """
    root = root or registry.find_root()
    path = root / registry.load(root)[slug].notebook
    page = ModuleType(f"page_{slug.replace('-', '_')}", f"Definitions of {path}")
    sys.modules[page.__name__] = page  # dataclasses and pickle look their module up by name
    for cell in text.read_notebook(path).cells:
        if cell.cell_type == "code" and only_defines(cell.source):
            exec(compile(cell.source, f"{path.name}[{cell.id}]", "exec"), page.__dict__)
    return page


def only_defines(source: str) -> bool:
    """True when a cell holds imports, definitions and constants alone (and at least one of them)."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return False
    return bool(body) and all(map(_defines, body))


def _defines(node: ast.stmt) -> bool:
    if isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)):
        return True
    if isinstance(node, ast.Assign):
        names = [leaf for target in node.targets for leaf in ast.walk(target) if isinstance(leaf, ast.Name)]
        return bool(names) and all(name.id.isupper() for name in names)
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
