"""Chapters times seeds: how often does each claim hold, and how far does the measured value spread?"""
from __future__ import annotations

import datetime
import json
import statistics
from pathlib import Path

from . import cache
from .build import Unit, check_profile, job, one_at_a_time
from .errors import PressError
from .files import write_atomically
from .registry import Registry
from .schedule import Times, run_all
from .scoreboard import load_sweep
from .text import read_notebook


def parse_seeds(text: str) -> list[int]:
    """``"0-4"`` or ``"0,3,11-13"`` as a sorted list of seeds."""
    seeds = set()
    try:
        for piece in text.split(","):
            first, _, last = piece.partition("-")
            seeds |= set(range(int(first), int(last or first) + 1))
    except ValueError:
        seeds = set()
    if not seeds:
        raise PressError(f"--seeds is {text!r}; give a range such as 0-4, or a list such as 0,3,11-13.")
    return sorted(seeds)


def sweep(root: Path, registry: Registry, slugs: list[str], seeds: list[int], *, profile: str, scheduler: str = "",
          workers: int | None = None, progress) -> tuple[dict, list[str]]:
    """Run the chapters on the seeds, write ``book/reproduction.json``; returns its content and the failures."""
    papers = [registry[slug] for slug in slugs] or registry.papers
    limits = check_profile(profile)
    with one_at_a_time(root, progress.say):
        store, times, failures, work = cache.Cache(root), Times(root), [], {}
        claims: dict[str, list[list[dict]]] = {paper.slug: [] for paper in papers}
        for paper in papers:
            notebook = read_notebook(root / paper.notebook)
            for seed in seeds:
                unit = Unit(paper.slug, paper.notebook, paper, {"seed": seed, "profile": profile}, notebook)
                name = f"{paper.slug}, seed {seed}"
                unit.key = cache.key(notebook, unit.parameters, root)
                stored = store.get(unit.stored_as, unit.key)
                progress(name, "cached" if stored else "waiting")
                if stored:
                    claims[paper.slug].append(stored["claims"])
                else:
                    work[name] = unit
        for done, result in run_all([job(unit, limits, name) for name, unit in work.items()], times, workers=workers,
                                    scheduler=scheduler, on_start=lambda name: progress(name, "running")):
            unit, failure = work[done.name], result["failure"]
            progress(done.name, "failed" if failure else "done", result["seconds"])
            if failure:
                failures.append(f"{done.name}, cell {failure['cell'] or '-'}: {failure['error']}")
                continue
            store.put(unit.stored_as, unit.key, result)
            claims[unit.paper.slug].append(result["claims"])
        content = load_sweep(root)
        content["chapters"].update({slug: summary(runs) for slug, runs in claims.items() if runs})
        content |= {"date": datetime.date.today().isoformat(), "profile": profile, "seeds": seeds,
                    "versions": cache.versions(root)}
        if not failures:
            write_atomically(root / "book/reproduction.json", json.dumps(content, indent=1, sort_keys=True) + "\n")
    return content, failures


def summary(runs: list[list[dict]]) -> dict[str, dict]:
    """For each claim of one chapter: how often it was reproduced, its verdicts, median and range of the measurement."""
    found: dict[str, list[dict]] = {}
    for claims in runs:
        for claim in claims:
            found.setdefault(claim["id"], []).append(claim)
    made = {}
    for id, claims in found.items():
        verdicts = [claim["verdict"] for claim in claims]
        values = [claim["measured"] for claim in claims if claim["measured"] is not None]
        made[id] = {
            "runs": len(values), "held": verdicts.count("reproduced"), "fragile": len(set(verdicts)) > 1,
            "verdicts": {verdict: verdicts.count(verdict) for verdict in sorted(set(verdicts))},
            "median": statistics.median(values) if values else None,
            "low": min(values, default=None), "high": max(values, default=None)}
    return made
