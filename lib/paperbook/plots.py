"""Figures that read well on a light and a dark page, for colour-blind readers and for those who hear the page.

A figure is printed as inline SVG. Everything drawn in :data:`INK` (text, axes, default lines) becomes
``currentColor``, so the page's theme colours it; the palette has at least 3:1 contrast on white and on near-black.
"""
from __future__ import annotations

import hashlib
import io
import re
from html import escape

import matplotlib as mpl
import matplotlib.pyplot as plt
from cycler import cycler
from IPython.display import display

INK = "#2b2f36"  #: the default ink: printed as the theme's text colour
BLUE, ORANGE, GREEN = "#2a7fd4", "#d9620f", "#14946e"
PURPLE, RED, GREY = "#9b6ad6", "#d1495b", "#7d8590"
PALETTE = (BLUE, ORANGE, GREEN, PURPLE, RED, GREY)
_DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))

_STYLE = {
    "figure.figsize": (7, 3.4), "figure.dpi": 96, "figure.facecolor": "none", "savefig.transparent": True,
    "figure.constrained_layout.use": True,
    "axes.facecolor": "none", "axes.edgecolor": INK, "axes.labelcolor": INK, "axes.titlesize": 11,
    "axes.spines.top": False, "axes.spines.right": False, "axes.titlelocation": "left",
    "axes.prop_cycle": cycler(color=PALETTE) + cycler(linestyle=_DASHES),
    "text.color": INK, "xtick.color": INK, "ytick.color": INK, "font.size": 10.5,
    "lines.linewidth": 1.8, "patch.edgecolor": INK, "legend.frameon": False, "legend.labelcolor": INK,
    "grid.color": INK, "grid.alpha": 0.15, "image.cmap": "viridis",
    "svg.hashsalt": "paperbook", "svg.fonttype": "path",
}


def use_house_style() -> None:
    """Make the house style the default of matplotlib in this process; backends and sizes stay changeable."""
    mpl.rcParams.update(_STYLE)
    plt.ioff()  # figures appear through show(), once, with their alt text


def show(fig: plt.Figure, *, alt: str, caption: str = "") -> None:
    """Show a figure on the page and close it.

    alt: what a person who cannot see the figure should know, in words; required.
    caption: an optional line under the figure.
    """
    display(_Figure(to_svg(fig, alt=alt), alt, caption))


class _Figure:
    def __init__(self, svg: str, alt: str, caption: str):
        self.svg, self.alt, self.caption = svg, alt, caption

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        caption = f"<figcaption>{escape(self.caption)}</figcaption>" if self.caption else ""
        return {"text/plain": f"[Figure: {self.alt}]",
                "text/html": f'<figure class="pb-figure" style="margin:1em 0">{self.svg}{caption}</figure>'}


def to_svg(fig: plt.Figure, *, alt: str) -> str:
    """The figure as an SVG element that follows the page's theme; closes the figure.

    Raises ValueError without alt text.
    """
    if not alt or not alt.strip():
        raise ValueError("A figure needs alt text: say in a sentence what it shows.")
    buffer = io.StringIO()
    fig.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Type": None, "Format": None})
    plt.close(fig)
    raw = buffer.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", raw[raw.index("<svg"):], flags=re.S)
    svg = svg.replace(INK, "currentColor")
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    # Ids are shared by the whole page, so each figure gets a prefix of its own.
    prefix = "f" + hashlib.sha1(svg.encode()).hexdigest()[:8]
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\1{prefix}-", svg)
    # Hundredths of a point are finer than any screen.
    svg = re.sub(r' d="[^"]*"', lambda d: re.sub(r"(\.\d\d)\d+", r"\1", d[0]), svg)
    width = float(re.search(r'width="([\d.]+)pt"', svg)[1])
    svg = re.sub(r' (width|height)="[\d.]+pt"', "", svg, count=2)
    svg = re.sub(r"<style.*?</style>", "", svg, flags=re.S)  # it would style every line on the page
    root = (f'<svg role="img" aria-label="{escape(alt.strip())}" style="width:{width * 4 / 3:.0f}px;max-width:100%;'
            'height:auto;stroke-linejoin:round;stroke-linecap:butt" ')
    return svg.replace("<svg ", root, 1).strip()
