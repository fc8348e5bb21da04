"""All chapters as cards, and all claims of all chapters as one table and one JSON file."""
from __future__ import annotations

import json
from collections import Counter
from html import escape
from pathlib import Path

from paperbook.claims import VERDICTS, badge, natural

from .registry import LEVELS, Paper, Registry

LIBRARY, BOARD, OPENER = "<!-- press: library -->", "<!-- press: scoreboard -->", "<!-- press: chapters -->"


def totals(claims: dict[str, list[dict]]) -> dict[str, int]:
    """How many claims have each verdict, in the order of the verdicts."""
    count = Counter(claim["verdict"] for found in claims.values() for claim in found)
    return {verdict: count[verdict] for verdict in VERDICTS if count[verdict]}


def pages(root: Path, registry: Registry, claims: dict[str, list[dict]], files: dict[str, bytes]) -> dict[str, bytes]:
    """The generated pages: staged prose with its markers filled in, and ``_static/scoreboard.json``."""
    swept = load_sweep(root)
    rows = [dict(chapter=paper.slug, title=paper.chapter, part=paper.part, **claim,
                 seeds=swept["chapters"].get(paper.slug, {}).get(claim["id"]))
            for paper in registry.papers for claim in sorted(claims.get(paper.slug, []), key=lambda c: natural(c["id"]))]
    made = {"book/_static/scoreboard.json": json.dumps(
        {"claims": rows, "sweep": {k: v for k, v in swept.items() if k != "chapters"}}, indent=1).encode()}
    filled = {LIBRARY: _library(registry, claims, files), BOARD: _board(registry, rows, totals(claims), swept)}
    for part in registry.parts:
        page = f"book/parts/{part.id}.md"
        if page in files:
            cards = _cards(registry.of(part), registry, claims, files, up="../../")
            made[page] = files[page].replace(OPENER.encode(), _raw(cards).encode())
    for name, text in files.items():
        if name.startswith("book/") and name.endswith(".md") and name not in made:
            for marker, html in filled.items():
                if marker.encode() in text:
                    made[name] = text = text.replace(marker.encode(), _raw(html).encode())
    return made


def load_sweep(root: Path) -> dict:
    """``book/reproduction.json``, or an empty sweep before the first one."""
    path = root / "book/reproduction.json"
    return json.loads(path.read_text()) if path.exists() else {"chapters": {}, "seeds": [], "date": ""}


def _raw(html: str) -> str:
    return f"```{{raw}} html\n{html}\n```"


def _library(registry: Registry, claims: dict, files: dict) -> str:
    used = [part for part in registry.parts if registry.of(part)]
    return (f'<div class="pb-filters" data-target="#pb-library">'
            f'{_select("part", "Part", [(p.id, p.title) for p in used])}'
            f'{_select("level", "Level", [(str(k), v) for k, v in LEVELS.items()])}{_search()}</div>'
            f'<p class="pb-count" role="status"></p>'
            f'<div id="pb-library">{_cards(registry.papers, registry, claims, files, up="../")}</div>')


def _cards(papers: list[Paper], registry: Registry, claims: dict, files: dict, up: str) -> str:
    titles = {part.id: part.title for part in registry.parts}
    cards = []
    for paper in papers:
        link = f"{up}{paper.notebook.with_suffix('.html').as_posix()}"
        thumb = f"book/_static/thumbs/{paper.slug}.svg"
        picture = (f'<img src="{up}_static/thumbs/{paper.slug}.svg" alt="" loading="lazy">' if thumb in files else "")
        counts = Counter(claim["verdict"] for claim in claims.get(paper.slug, []))
        badges = " ".join(f'<span class="pb-nowrap">{counts[v]} {badge(v)}</span>' for v in VERDICTS if counts[v])
        cards.append(
            f'<article class="pb-card" data-item data-part="{paper.part}" data-level="{paper.level}">'
            f'<div class="pb-thumb">{picture}</div><h3><a href="{link}">{escape(paper.chapter)}</a></h3>'
            f"<p>{escape(paper.summary)}</p>"
            f'<p class="pb-facts">{escape(titles[paper.part])} · {LEVELS[paper.level]} · {paper.minutes} minutes</p>'
            f'<p class="pb-facts"><i>{escape(paper.title)}</i></p><p class="pb-badges">{badges}</p></article>')
    return f'<div class="pb-cards">{"".join(cards)}</div>'


def _board(registry: Registry, rows: list[dict], count: dict[str, int], swept: dict) -> str:
    summary = " ".join(f'<span class="pb-nowrap">{number} {badge(verdict)}</span>' for verdict, number in count.items())
    parts = [part for part in registry.parts if registry.of(part)]
    head = "".join(f'<th scope="col" aria-sort="none"><button type="button">{name}</button></th>' for name in
                   ("Chapter", "Claim", "The paper", "Measured", "Control", "Verdict", "Seeds"))
    body = "".join(_row(registry[row["chapter"]], row) for row in rows)
    seeds = (f"The last column comes from a sweep over seeds {_span(swept['seeds'])} on {swept['date']}."
             if swept["seeds"] else "No sweep over seeds has been recorded yet.")
    return (f'<p class="pb-totals">{len(rows)} claims: {summary}</p><p>{seeds}</p>'
            f'<div class="pb-filters" data-target="#pb-board">'
            f'{_select("part", "Part", [(p.id, p.title) for p in parts])}'
            f'{_select("verdict", "Verdict", [(v, v) for v in count])}{_search()}</div>'
            f'<p class="pb-count" role="status"></p>'
            f'<div class="pb-scroll" tabindex="0" role="region" aria-label="All claims of all chapters">'
            f'<table id="pb-board" class="pb-claims pb-sortable"><thead><tr>{head}</tr></thead><tbody>{body}</tbody>'
            f"</table></div>")


def _row(paper: Paper, row: dict) -> str:
    link = f"../{paper.notebook.with_suffix('.html').as_posix()}#claims"
    cells = [f'<th scope="row"><a href="{link}" title="{escape(paper.chapter)}">{paper.slug}</a></th>',
             f'<td>{escape(row["id"])}. {escape(row["statement"])}</td>', f'<td>{escape(row["paper"])}</td>',
             *(f'<td data-sort="{"" if row[k] is None else row[k]}">{escape(row[f"{k}_text"]) or "–"}</td>'
               for k in ("measured", "control")),
             f'<td>{badge(row["verdict"])}</td>', f"<td>{_seeds(row['seeds'])}</td>"]
    return (f'<tr data-item data-part="{paper.part}" data-verdict="{row["verdict"]}">{"".join(cells)}</tr>')


def _seeds(swept: dict | None) -> str:
    if not swept or not swept["runs"]:
        return "–"
    held = f"{swept['held']} of {swept['runs']}"
    spread = "" if swept["median"] is None else f"; median {swept['median']:.3g}, {swept['low']:.3g} to {swept['high']:.3g}"
    fragile = ' <span class="pb-badge pb-fragile" title="the verdict changes with the seed">≈ fragile</span>'
    return f"{held}{spread}{fragile if swept['fragile'] else ''}"


def _span(seeds: list[int]) -> str:
    whole = seeds == list(range(seeds[0], seeds[-1] + 1)) and len(seeds) > 1
    return f"{seeds[0]} to {seeds[-1]}" if whole else ", ".join(map(str, seeds))


def _select(name: str, label: str, options: list[tuple[str, str]]) -> str:
    choices = "".join(f'<option value="{escape(value)}">{escape(text)}</option>' for value, text in options)
    return f'<label>{label} <select data-filter="{name}"><option value="">all</option>{choices}</select></label>'


def _search() -> str:
    return '<label>Text <input type="search" data-filter="text"></label>'
