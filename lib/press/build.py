"""From the repository to the printed book: execute what the cache lacks, judge it, print it."""
from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from filelock import FileLock, Timeout

from . import cache, site
from .errors import PressError
from .execute import GB, PROFILES, Job
from .registry import Paper, Registry, did_you_mean
from .schedule import Times, run_all
from .text import read_notebook

PROMISE = dict(seconds=60, memory=2 * GB)  # what the profile quick promises to its reader


@dataclass
class Unit:
    """One notebook of the book: a chapter or its exercises."""

    name: str  #: the notebook's file name without suffix
    path: Path  #: below the root
    paper: Paper
    parameters: dict = field(default_factory=dict)
    notebook: nbformat.NotebookNode | None = None
    key: str = ""
    result: dict | None = None  #: see press.execute.execute
    cached: bool = False

    @property
    def stored_as(self) -> str:
        """The name in the cache: one per notebook, profile and seed, so that none drives another out."""
        return "-".join([self.name, *(str(self.parameters[k]) for k in ("profile", "seed") if k in self.parameters)])

    @property
    def is_chapter(self) -> bool:
        return self.path == self.paper.notebook


@dataclass
class Report:
    """What a build found. ``problems`` fail it, ``remarks`` do not."""

    units: list[Unit]
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    html: Path | None = None

    @property
    def failures(self) -> list[Unit]:
        return [unit for unit in self.units if unit.result and unit.result["failure"]]

    @property
    def claims(self) -> dict[str, list[dict]]:
        return {unit.paper.slug: unit.result["claims"] for unit in self.units
                if unit.is_chapter and unit.result and not unit.result["failure"]}


def check_profile(profile: str) -> dict:
    if profile not in PROFILES:
        raise PressError(f"There is no profile {profile!r}{did_you_mean(profile, PROFILES)}")
    return PROFILES[profile]


def units_of(registry: Registry, root: Path, parameters: dict) -> list[Unit]:
    """Every notebook of the book, read and keyed."""
    units = []
    for paper in registry.papers:
        units += [Unit(paper.slug, paper.notebook, paper, dict(parameters)),
                  Unit(f"{paper.slug}-exercises", paper.exercises, paper)]
    for unit in units:
        unit.notebook = read_notebook(root / unit.path)
        unit.key = cache.key(unit.notebook, unit.parameters, root)
    return units


def job(unit: Unit, limits: dict, name: str = "") -> Job:
    """What a worker needs to execute the unit; ``name`` is what the display calls it."""
    return Job(name or unit.name, nbformat.writes(unit.notebook), unit.parameters, library=cache.library_digest(), **limits)


@contextmanager
def one_at_a_time(root: Path, say: Callable[[str], None]):
    """A second build of the same folder waits for the first; then most of its work is in the cache."""
    (root / "_build").mkdir(exist_ok=True)
    lock = FileLock(root / "_build/.lock")
    try:
        lock.acquire(timeout=0.05)
    except Timeout:
        say("Another build is at work in this folder; waiting for it to end.")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def build(root: Path, registry: Registry, *, only: list[str] = (), force: list[str] = (), profile: str = "quick",
          seed: int = 0, workers: int | None = None, scheduler: str = "", strict: bool = False,
          seconds: float | None = None, memory: float | None = None, progress) -> Report:
    """Build the book; see ``press build --help`` for the options.

    progress: told what happens through ``progress(unit_name, state, seconds=None)`` and ``progress.say(text)``.
    """
    begun = time.monotonic()
    limits = dict(check_profile(profile))
    limits.update({k: v for k, v in dict(seconds=seconds, memory=memory).items() if v})
    chosen = {registry[slug].slug for slug in only} or {paper.slug for paper in registry.papers}
    forced = {registry[slug].slug for slug in force}
    with one_at_a_time(root, progress.say):
        units = units_of(registry, root, {"seed": seed, "profile": profile})
        store, times = cache.Cache(root), Times(root)
        report = Report(units)
        for unit in units:
            if unit.paper.slug not in forced:
                unit.result = store.get(unit.stored_as, unit.key)
                unit.cached = unit.result is not None
            progress(unit.name, "cached" if unit.cached else "waiting")
        for path in store.broken:
            progress.say(f"The cache file {path.relative_to(root)} was damaged; its notebook is executed again.")
        work = {unit.name: unit for unit in units if not unit.result and unit.paper.slug in chosen | forced}
        for done, result in run_all([job(unit, limits) for unit in work.values()], times, workers=workers,
                                    scheduler=scheduler, on_start=lambda name: progress(name, "running")):
            unit = work[done.name]
            unit.result = result
            if not result["failure"]:
                store.put(unit.stored_as, unit.key, result)
            progress(unit.name, "failed" if result["failure"] else "done", result["seconds"])
        _judge(report, compare=(profile == "quick" and seed == 0), strict=strict, root=root)
        if not report.failures:
            report.html, warnings = site.print_book(root, registry, units, progress.say)
            report.problems += warnings
    report.seconds = time.monotonic() - begun
    return report


def _judge(report: Report, *, compare: bool, strict: bool, root: Path) -> None:
    """Compare verdicts with the registry, and look at what the outputs would put on the page."""
    for unit in report.units:
        if not unit.result or unit.result["failure"]:
            continue
        report.problems += [f"{unit.path}, {finding}" for finding in page_findings(nbformat.reads(
            unit.result["notebook"], as_version=4))]
        if unit.is_chapter:
            report.problems += verdict_findings(unit.paper, unit.result["claims"], compare)
            slow = unit.result["seconds"] > PROMISE["seconds"] or unit.result["peak_memory"] > PROMISE["memory"]
            if slow and unit.parameters.get("profile") == "quick":
                (report.problems if strict else report.remarks).append(
                    f"{unit.paper.slug} took {unit.result['seconds']:.0f} s and {unit.result['peak_memory'] / GB:.1f} GB; "
                    f"quick promises {PROMISE['seconds']} s and {PROMISE['memory'] / GB:.0f} GB")
    if strict:
        swept = root / "book/reproduction.json"
        chapters = json.loads(swept.read_text())["chapters"] if swept.exists() else {}
        report.problems += [f"{slug} {id} is fragile: its verdict changes with the seed"
                            for slug, claims in chapters.items() for id, claim in claims.items() if claim["fragile"]]


def verdict_findings(paper: Paper, claims: list[dict], compare: bool) -> list[str]:
    """Claims that are no evidence, and (when ``compare``) verdicts other than the registry expects."""
    found = {claim["id"]: claim["verdict"] for claim in claims}
    findings = [f"{paper.slug} {id} is undecided: its control passes the criterion too, so it is no evidence"
                for id, verdict in found.items() if verdict == "undecided"]
    if compare:
        for id in sorted({*found, *paper.claims}):
            if found.get(id) != paper.claims.get(id) and found.get(id) != "undecided":
                findings.append(f"{paper.slug} {id}: book/papers.yml expects {paper.claims.get(id, 'no such claim')!r}, "
                                f"and the notebook found {found.get(id, 'no such claim')!r}")
    return findings


def page_findings(executed: nbformat.NotebookNode) -> list[str]:
    """Outputs that must not reach a reader: warnings on stderr, and figures without alt text."""
    findings = []
    for cell in cache.code_cells(executed):
        for output in cell.outputs:
            if output.output_type == "stream" and output.name == "stderr":
                findings.append(f"cell {cell.id}: it writes to stderr: {output.text.strip().splitlines()[-1]}")
            elif {"image/png", "image/svg+xml"} & set(output.get("data", {})):
                findings.append(f"cell {cell.id}: it shows a figure without alt text; use paperbook.show")
    return findings
