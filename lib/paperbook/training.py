"""What long runs share: a progress bar for readers at a keyboard, and nothing on the printed page."""
from __future__ import annotations

import os
from collections.abc import Iterable, Iterator


def printing() -> bool:
    """True while the press runs the notebook to print the page: nobody is there to move a slider or watch a bar."""
    return os.environ.get("PAPERBOOK_PRINT") == "1"


def progress(iterable: Iterable, label: str, total: int | None = None) -> Iterator:
    """Iterate over ``iterable`` with a progress bar called ``label``; without one when the book is printed."""
    if printing():
        return iter(iterable)
    from tqdm.auto import tqdm

    return iter(tqdm(iterable, desc=label, total=total, leave=False))
