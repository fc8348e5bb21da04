"""``book/papers.yml``, the one list of parts and papers, read and checked."""
from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml
from paperbook.claims import VERDICTS

from .errors import PressError

LEVELS = {1: "introductory", 2: "intermediate", 3: "advanced"}
#: the fields of a paper in book/papers.yml and their types
FIELDS = {"slug": str, "title": str, "chapter": str, "authors": list, "venue": str, "arxiv": str, "code": str,
          "part": str, "level": int, "minutes": int, "prerequisites": list, "summary": str, "claims": dict, "timed": list}


@dataclass(frozen=True)
class Part:
    id: str
    title: str


@dataclass(frozen=True)
class Paper:
    """One paper; ``claims`` maps a claim's id to the verdict expected at seed 0, profile quick.

    ``timed`` names the claims that are measured by the clock: their digits change from run to run.
    """

    slug: str
    title: str
    chapter: str
    authors: list[str]
    venue: str
    arxiv: str
    code: str
    part: str
    level: int
    minutes: int
    prerequisites: list[str]
    summary: str
    claims: dict[str, str]
    timed: list[str]

    @property
    def notebook(self) -> Path:
        """The chapter's path below the root of the repository."""
        return Path("notebooks") / self.part / f"{self.slug}.ipynb"

    @property
    def exercises(self) -> Path:
        return self.notebook.with_name(f"{self.slug}-exercises.ipynb")

    @property
    def tests(self) -> Path:
        return Path("tests/chapters") / f"test_{self.slug.replace('-', '_')}.py"

    @property
    def links(self) -> str:
        """The paper's links as Markdown."""
        links = [f"[arXiv {self.arxiv}](https://arxiv.org/abs/{self.arxiv})"] if self.arxiv else []
        return " · ".join(links + ([f"[the authors' code]({self.code})"] if self.code else []))

    def box(self) -> str:
        """The box under the chapter's title, plain Markdown so that it reads the same on Colab."""
        facts = [f"**Level:** {LEVELS[self.level]}", f"**Reading time:** {self.minutes} minutes",
                 f"**Good to know before:** {', '.join(self.prerequisites)}"]
        return (f"> **The paper.** {', '.join(self.authors)}: *{self.title}*. {self.venue}. {self.links}\n>\n"
                f"> {' · '.join(facts)}").replace(". \n", ".\n")


@dataclass(frozen=True)
class Registry:
    parts: list[Part]
    papers: list[Paper]

    def __getitem__(self, slug: str) -> Paper:
        for paper in self.papers:
            if paper.slug == slug:
                return paper
        raise PressError(f"There is no chapter {slug!r}{did_you_mean(slug, [p.slug for p in self.papers])}")

    def of(self, part: Part) -> list[Paper]:
        """The papers of a part, in the order of the registry."""
        return [paper for paper in self.papers if paper.part == part.id]


def find_root(start: Path | None = None) -> Path:
    """The repository's root: the nearest folder upwards of ``start`` (or of this file) with ``book/papers.yml``."""
    for origin in (Path(start or Path.cwd()), Path(__file__)):
        for folder in (origin.resolve(), *origin.resolve().parents):
            if (folder / "book/papers.yml").is_file():
                return folder
    raise PressError("This is not a folder of the book (no book/papers.yml here or above); "
                     "change into the cloned repository.")


def load(root: Path) -> Registry:
    """Read the registry; raises PressError with the place and the remedy for the first thing that is wrong."""
    path = root / "book/papers.yml"
    try:
        data = yaml.safe_load(path.read_text("utf-8")) or {}
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" near line {mark.line + 1}" if mark else ""
        raise PressError(f"book/papers.yml is not valid YAML{place}; check its indentation and quotes.") from None
    if not isinstance(data, dict) or not isinstance(data.get("parts"), list):
        raise PressError("book/papers.yml needs the two lists `parts` and `papers`.")
    parts = [Part(part["id"], part["title"]) for part in data["parts"]]
    papers = [_paper(entry, index, parts) for index, entry in enumerate(data.get("papers") or [], 1)]
    papers.sort(key=lambda paper: [part.id for part in parts].index(paper.part))  # stable within a part
    slugs = [paper.slug for paper in papers]
    for slug in slugs:
        if slugs.count(slug) > 1:
            raise PressError(f"book/papers.yml lists {slug!r} twice; remove one of the entries.")
    return Registry(parts, papers)


def _paper(entry: object, index: int, parts: list[Part]) -> Paper:
    name = entry.get("slug", f"number {index}") if isinstance(entry, dict) else f"number {index}"
    where = f"book/papers.yml, paper {name!r}:"
    if not isinstance(entry, dict):
        raise PressError(f"{where} an entry is a list of `field: value` lines.")
    for field, kind in FIELDS.items():
        if field not in entry:
            raise PressError(f"{where} the field `{field}` is missing; add it.")
        if not isinstance(entry[field], kind):
            raise PressError(f"{where} `{field}` is {entry[field]!r}, and should be a {kind.__name__}.")
    unknown = sorted(set(entry) - set(FIELDS))
    if unknown:
        raise PressError(f"{where} there is no field `{unknown[0]}`{did_you_mean(unknown[0], FIELDS)}")
    if entry["part"] not in [part.id for part in parts]:
        raise PressError(f"{where} there is no part {entry['part']!r}"
                         f"{did_you_mean(entry['part'], [part.id for part in parts])}")
    if entry["level"] not in LEVELS:
        raise PressError(f"{where} `level` is {entry['level']}, and should be 1, 2 or 3.")
    for claim, verdict in entry["claims"].items():
        if verdict not in VERDICTS or verdict == "undecided":
            raise PressError(f"{where} the expected verdict of {claim} is {verdict!r}, and should be one of "
                             f"{', '.join(v for v in VERDICTS if v != 'undecided')}.")
    return Paper(**entry)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The tail of a sentence that names what is close to ``word``, or all there is."""
    known = list(known)
    near = difflib.get_close_matches(word, known, n=3, cutoff=0.5)
    if near:
        return f"; did you mean {' or '.join(near)}?"
    return f"; there are {', '.join(known)}." if known else "; there are none yet."
