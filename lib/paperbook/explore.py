"""Interactive figures that work with a kernel and without one.

With a live kernel ``explore`` makes ipywidgets sliders that call ``draw``. When the press prints the book, it draws
every combination once and embeds them as a player that needs neither kernel nor network.
"""
from __future__ import annotations

import base64
import gzip
import itertools
import json
from collections.abc import Callable
from html import escape
from importlib.resources import files

from IPython.display import HTML, display

from .plots import to_svg
from .training import printing

MAX_FRAMES = 64
MAX_BYTES = 1_000_000


def explore(draw: Callable, *, alt: str, caption: str = "", **options: list) -> None:
    """Show ``draw(**values)`` with a slider for each option.

    draw: takes one value per option by keyword, returns a matplotlib figure.
    alt: what the picture shows, in words; the sliders' values are appended to it.
    options: name -> list of values; the first of each is what the reader sees first. At most 64 combinations.
    Raises ValueError for no option, an empty one, too many combinations, or a printed player above 1 MB.
    """
    if not options or not all(len(values) for values in options.values()):
        raise ValueError("explore needs at least one option with at least one value, such as noise=[0, 0.1].")
    options = {name: list(values) for name, values in options.items()}
    combinations = [dict(zip(options, values)) for values in itertools.product(*options.values())]
    if len(combinations) > MAX_FRAMES:
        raise ValueError(f"explore would draw {len(combinations)} frames, and {MAX_FRAMES} are the limit; "
                         "give fewer values.")

    def frame(values: dict) -> str:
        state = ", ".join(f"{name.replace('_', ' ')} = {value}" for name, value in values.items())
        return to_svg(draw(**values), alt=f"{alt} ({state})")

    if printing():
        player = _player([frame(values) for values in combinations], options, caption)
        display({"text/html": player, "text/plain": f"[Interactive figure: {alt}]"}, raw=True)
    else:
        _live(frame, options, caption)


def _live(frame: Callable[[dict], str], options: dict[str, list], caption: str) -> None:
    import ipywidgets as widgets

    picture = widgets.HTML()
    sliders = {
        name: widgets.SelectionSlider(options=[(str(v), v) for v in values], description=name.replace("_", " "),
                                      continuous_update=False, style={"description_width": "initial"})
        for name, values in options.items()}

    def redraw(_change=None) -> None:
        picture.value = frame({name: slider.value for name, slider in sliders.items()})

    for slider in sliders.values():
        slider.observe(redraw, names="value")
    redraw()
    display(widgets.VBox([*sliders.values(), picture]))
    if caption:
        display(HTML(f"<p>{escape(caption)}</p>"))


def _player(frames: list[str], options: dict[str, list], caption: str) -> str:
    packed = base64.b64encode(gzip.compress(json.dumps(frames).encode(), 9, mtime=0)).decode()
    sliders = "".join(
        f'<label><span>{escape(name.replace("_", " "))}</span>'
        f'<input type="range" min="0" max="{len(values) - 1}" step="1" value="0" '
        f'aria-valuetext="{escape(str(values[0]))}" data-values="{escape(json.dumps([str(v) for v in values]))}">'
        f"<output>{escape(str(values[0]))}</output></label>" for name, values in options.items())
    script = files("paperbook").joinpath("explore.js").read_text("utf-8")
    html = (f'<figure class="pb-explore"><div class="pb-stage">{frames[0]}</div>'
            f'<div class="pb-controls" role="group" aria-label="Controls of the figure" hidden>{sliders}'
            f'<button type="button">▶ Play</button></div>'
            f"{f'<figcaption>{escape(caption)}</figcaption>' if caption else ''}"
            f'<script type="application/x-paperbook-frames">{packed}</script><script>{script}</script></figure>')
    if len(html) > MAX_BYTES:
        raise ValueError(f"This interactive figure would weigh {len(html) / 1e6:.1f} MB, and 1 MB is the limit; "
                         "draw fewer frames, fewer points, or rasterise the heavy parts.")
    return html
