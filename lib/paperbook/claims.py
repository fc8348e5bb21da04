"""A claim of a paper, measured again: what was said, what we found, and what happens without the mechanism.

The verdict follows from two numbers and a criterion; nobody can type it in. A claim travels inside the notebook's
output under :data:`MIME`, so whoever has the executed notebook has its claims.
"""
from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from html import escape

MIME = "application/vnd.paperbook.claim+json"

#: verdict -> (sign, meaning)
VERDICTS = {
    "reproduced": ("✔", "the criterion holds, and fails without the mechanism"),
    "partly": ("◐", "the direction holds, the stated size does not"),
    "not reproduced": ("✘", "the criterion does not hold"),
    "out of reach": ("○", "not measurable at this scale"),
    "undecided": ("?", "the control passes too, so the measurement is no evidence"),
}


@dataclass(frozen=True)
class Claim:
    """One row of a chapter's claims table. ``measured`` and ``control`` are None when out of reach."""

    id: str
    statement: str
    paper: str
    verdict: str
    criterion: str
    measured: float | None = None
    control: float | None = None
    measured_text: str = ""
    control_text: str = ""
    note: str = ""

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        sign = VERDICTS[self.verdict][0]
        numbers = f"measured {self.measured_text}, control {self.control_text}; " if self.measured_text else ""
        text = f"{sign} {self.id} {self.verdict}: {self.statement}. {numbers}{self.criterion}. {self.note}".rstrip()
        return {"text/plain": text, "text/html": self.card(), MIME: asdict(self)}

    def card(self) -> str:
        """The claim as a small HTML card, to stand where it was measured."""
        values = ""
        if self.measured_text:
            values = (f"<p>Measured <b>{escape(self.measured_text)}</b>; control {escape(self.control_text)}. "
                      f"Criterion: {escape(self.criterion)}.</p>")
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        return (f'<div class="pb-claim pb-{_css(self.verdict)}" style="border-left:5px solid;padding:.4em 1em">'
                f'<p>{badge(self.verdict)} '
                f"<b>Claim {escape(self.id)}.</b> {escape(self.statement)}. "
                f"Paper: {escape(self.paper)}.</p>{values}{note}</div>")


def judge(id: str, statement: str, *, paper: str, measured: float, control: float, holds: Callable[[float], bool],
          criterion: str, partly: Callable[[float], bool] | None = None, fmt: str = "{:.3g}", note: str = "") -> Claim:
    """Apply the criterion to the measurement and to its control.

    measured, control: finite numbers in the same unit; the control is the same measurement with the paper's
        mechanism taken out, or with the rival in its place.
    holds: the criterion. It must be true of ``measured`` and false of ``control``.
    partly: a weaker predicate, "the direction holds". It decides between *partly* and *not reproduced*.
    fmt: how the two numbers are printed.
    Raises ValueError for a number that is missing, not a number, or infinite.
    """
    numbers = {"measured": float(measured), "control": float(control)}
    for name, value in numbers.items():
        if not math.isfinite(value):
            raise ValueError(f"Claim {id}: {name} is {value}; give a finite number, or declare it out of reach.")

    def decided(predicate) -> str:
        return "undecided" if predicate(numbers["control"]) else "yes"

    if holds(numbers["measured"]):
        verdict = {"yes": "reproduced"}.get(decided(holds), "undecided")
    elif partly is not None and partly(numbers["measured"]):
        verdict = {"yes": "partly"}.get(decided(partly), "undecided")
    else:
        verdict = "not reproduced"
    return Claim(id, statement, paper, verdict, criterion, **numbers, measured_text=fmt.format(numbers["measured"]),
                 control_text=fmt.format(numbers["control"]), note=note)


def badge(verdict: str) -> str:
    """A verdict as a coloured word; the sign tells it apart without the colour."""
    sign, meaning = VERDICTS[verdict]
    return f'<span class="pb-badge pb-{_css(verdict)}" title="{meaning}">{sign}&nbsp;{verdict}</span>'


def table(claims: Iterable[Claim]) -> str:
    """The claims of a chapter as one HTML table; a note stands with its claim, where it was measured."""
    head = "".join(f'<th scope="col">{name}</th>' for name in
                   ("Claim", "The paper", "Measured here", "Control", "Criterion", "Verdict"))
    rows = "".join(
        f'<tr><th scope="row">{escape(c.id)}. {escape(c.statement)}</th><td>{escape(c.paper)}</td>'
        f"<td>{escape(c.measured_text) or '–'}</td><td>{escape(c.control_text) or '–'}</td>"
        f"<td>{escape(c.criterion)}</td><td>{badge(c.verdict)}</td></tr>" for c in claims)
    return (f'<div class="pb-scroll" tabindex="0" role="region" aria-label="Claims of this chapter">'
            f'<table class="pb-claims"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>')


def natural(id: str) -> tuple:
    """A key that sorts C2 before C2b before C10."""
    number, letters = re.fullmatch(r"\D*(\d*)(.*)", id).groups()
    return int(number or 0), letters


def _css(verdict: str) -> str:
    return verdict.replace(" ", "-")
