"""A new chapter: notebook, exercises, tests, registry entry and place in the contents, all passing `press check`."""
from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import yaml

from . import contract, registry as registry_module
from .errors import PressError
from .files import write_atomically
from .registry import Paper, Registry, did_you_mean
from .text import from_text, write_notebook


def new(root: Path, registry: Registry, slug: str, part: str) -> list[Path]:
    """Make the files of a chapter; returns their paths below ``root``. Raises PressError, having changed nothing,
    for a slug that is no kebab-case word, a chapter that exists, or an unknown part."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", slug):
        raise PressError(f"{slug!r} is not a slug; write small letters, digits and single hyphens, such as fixed-noise.")
    if slug in [paper.slug for paper in registry.papers]:
        raise PressError(f"There is a chapter {slug!r} already.")
    parts = [known.id for known in registry.parts]
    if part not in parts:
        raise PressError(f"There is no part {part!r}{did_you_mean(part, parts)}")
    title = slug.replace("-", " ").capitalize()
    entry = {"slug": slug, "title": title, "chapter": title, "authors": ["(authors)"], "venue": "ICML 2026",
             "arxiv": "", "code": "", "part": part, "level": 2, "minutes": 30, "prerequisites": ["(what helps)"],
             "summary": "(one sentence for the card)", "claims": {"C1": "reproduced", "C2": "out of reach"},
             "timed": []}
    paper = Paper(**entry)
    made = [paper.notebook, paper.exercises, paper.tests]
    for path in made:
        if (root / path).exists():
            raise PressError(f"{path} exists already; move it away first.")

    for name, path in zip(("chapter.py", "exercises.py", "test.py"), made):
        source = files("press").joinpath("templates", name).read_text("utf-8")
        source = source.replace("__SLUG__", slug).replace("__TITLE__", title)
        if path.suffix == ".py":
            write_atomically(root / path, source)
        else:
            write_notebook(from_text(source), root / path)
    papers = root / "book/papers.yml"
    text = yaml.safe_dump([entry], sort_keys=False, allow_unicode=True, default_flow_style=None, width=120)
    write_atomically(papers, re.sub(r"papers:\s*(\[\])?\s*$", "papers:", papers.read_text("utf-8").rstrip()) + "\n"
                     + "".join(f"  {line}\n" for line in text.splitlines()))
    _list_in_contents(root, registry, paper)
    contract.fix(root, registry_module.load(root))
    return [*made, Path("book/papers.yml"), Path("_toc.yml"), *_opener(root, registry, paper)]


def _opener(root: Path, registry: Registry, paper: Paper) -> list[Path]:
    path = Path("book/parts") / f"{paper.part}.md"
    if (root / path).exists():
        return []
    title = next(part.title for part in registry.parts if part.id == paper.part)
    write_atomically(root / path, f"# {title}\n\n(One page: what binds these papers together.)\n\n<!-- press: chapters -->\n")
    return [path]


def _list_in_contents(root: Path, registry: Registry, paper: Paper) -> None:
    path = root / "_toc.yml"
    contents = yaml.safe_load(path.read_text("utf-8"))
    opener = f"book/parts/{paper.part}"
    title = next(part.title for part in registry.parts if part.id == paper.part)
    parts = contents["parts"]
    chapters = next((c for p in parts for c in p["chapters"] if c["file"] == opener), None)
    if chapters is None:
        chapters = {"file": opener, "sections": []}
        order = [part.title for part in registry.parts]
        # Papers stand between the first group of pages and the last, in the order of the registry.
        place = next((i for i, p in enumerate(parts[1:], 1) if p.get("caption") not in order
                      or order.index(p["caption"]) > order.index(title)), len(parts))
        parts.insert(place, {"caption": title, "chapters": [chapters]})
    chapters["sections"].append({"file": paper.notebook.with_suffix("").as_posix(),
                                 "sections": [{"file": paper.exercises.with_suffix("").as_posix()}]})
    write_atomically(path, yaml.safe_dump(contents, sort_keys=False, allow_unicode=True))
