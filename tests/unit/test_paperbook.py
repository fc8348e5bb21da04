"""The library that notebooks import."""
import json
import re
import subprocess
import sys

import matplotlib
import numpy as np
import pytest
import torch

matplotlib.use("agg")
import matplotlib.pyplot as plt
from paperbook import Chapter, explore, plots, progress, show
from paperbook.claims import MIME, VERDICTS, badge, judge, table
from paperbook.models import TinyLM


EXPLORE = sys.modules["paperbook.explore"]  # the package's attribute of that name is the function


def claim(measured=1, control=5, **more):
    return judge("C1", "x stays < 2", **{**dict(paper="0", measured=measured, control=control, criterion="x < 2",
                                               holds=lambda x: x < 2), **more})


@pytest.mark.parametrize("measured, control, partly, verdict", [
    (1, 5, None, "reproduced"),
    (1, 1, None, "undecided"),
    (3, 5, None, "not reproduced"),
    (3, 1, None, "not reproduced"),
    (3, 5, lambda x: x < 4, "partly"),
    (3, 3.5, lambda x: x < 4, "undecided"),
    (1, 3, lambda x: x < 4, "reproduced"),
    (9, 5, lambda x: x < 4, "not reproduced"),
])
def test_a_verdict_follows_from_two_numbers(measured, control, partly, verdict):
    assert claim(measured, control, partly=partly).verdict == verdict


@pytest.mark.parametrize("numbers", [dict(measured=float("nan")), dict(control=float("inf"))])
def test_a_number_that_is_none_is_refused(numbers):
    with pytest.raises(ValueError, match="give a finite number"):
        claim(**numbers)


def test_a_claim_travels_in_the_output_and_is_readable():
    bundle = claim(measured=np.float32(1), note="1 < 2 & so on", fmt="{:.1%}")._repr_mimebundle_()
    record = json.loads(json.dumps(bundle[MIME]))
    assert (record["verdict"], record["measured"], record["measured_text"]) == ("reproduced", 1.0, "100.0%")
    assert "x stays &lt; 2" in bundle["text/html"] and "1 &lt; 2 &amp; so on" in bundle["text/html"]
    assert "reproduced" in bundle["text/plain"]
    assert "–" in table([claim(), claim(3)]) or "not reproduced" in table([claim(), claim(3)])
    assert len({badge(verdict) for verdict in VERDICTS}) == len({sign for sign, _ in VERDICTS.values()}) == 5


def test_a_chapter_seeds_everything_and_picks_settings():
    import random

    import torch

    draws = []
    for seed in (3, 3, 4):
        chapter = Chapter("x", seed=seed)
        draws.append((random.random(), np.random.rand(), torch.rand(()).item()))
    assert draws[0] == draws[1] != draws[2]
    assert vars(chapter.config(quick=dict(a=1, b=2), full=dict(b=3))) == dict(a=1, b=2)
    assert vars(Chapter("x", 0, "full").config(quick=dict(a=1, b=2), full=dict(b=3))) == dict(a=1, b=3)


@pytest.mark.parametrize("arguments", [dict(profile="fast"), dict(seed=-1), dict(seed="0"), dict(seed=True)])
def test_a_chapter_refuses_what_does_not_exist(arguments):
    with pytest.raises(ValueError):
        Chapter("x", **arguments)


def test_a_claim_run_twice_counts_once(capsys):
    chapter = Chapter("x")
    for measured in (3, 1):
        chapter.claim("C1", "x is small", paper="0", measured=measured, control=5, holds=lambda x: x < 2,
                      criterion="x < 2")
    chapter.out_of_reach("C2", "it scales", paper="7B", needs="a data centre")
    chapter.summary()
    assert [c.verdict for c in chapter.claims.values()] == ["reproduced", "out of reach"]


def figure():
    plots.use_house_style()
    fig, ax = plt.subplots()
    ax.plot([0, 1], [0, 1], label="a line")
    ax.scatter(np.random.default_rng(0).random(500), np.ones(500), rasterized=True)
    ax.set_title(r"$\alpha$ & more")
    ax.legend()
    return fig


def test_a_figure_follows_the_theme_and_speaks():
    svg = plots.to_svg(figure(), alt='rising "line" & <dots>')
    assert svg.startswith("<svg") and svg.endswith("</svg>")
    assert 'aria-label="rising &quot;line&quot; &amp; &lt;dots&gt;"' in svg and 'role="img"' in svg
    assert "currentColor" in svg and plots.INK not in svg and plots.BLUE in svg
    assert "#ffffff" not in svg and "<style" not in svg and "metadata" not in svg
    ids = set(re.findall(r'\bid="([^"]+)"', svg))
    used = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', svg))
    assert {a or b for a, b in used} <= ids, "each reference meets its definition"
    assert all(id.startswith("f") and "-" in id for id in ids), "ids carry the figure's prefix"
    assert plt.get_fignums() == []
    assert plots.to_svg(figure(), alt="x") == plots.to_svg(figure(), alt="x"), "the same figure, the same bytes"


def test_a_figure_without_words_is_refused():
    with pytest.raises(ValueError, match="alt text"):
        show(figure(), alt=" ")


def luminance(colour: str) -> float:
    rgb = np.array(matplotlib.colors.to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("background", ["#ffffff", "#121212", "#f4f6f8", "#1d2228"])
def test_the_palette_is_legible_on_both_themes(background):
    for colour in plots.PALETTE:
        assert contrast(colour, background) >= 2.9, colour


# Machado, Oliveira and Fernandes 2009 (doi:10.1109/TVCG.2009.113): full deuteranopia and protanopia, linear RGB.
DEUTAN = np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]])
PROTAN = np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]])


@pytest.mark.parametrize("matrix", [DEUTAN, PROTAN])
def test_the_first_three_colours_are_told_apart_by_the_colour_blind(matrix):
    seen = []
    for colour in plots.PALETTE[:3]:
        rgb = np.array(matplotlib.colors.to_rgb(colour))
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        seen.append(np.clip(matrix @ linear, 0, 1) ** (1 / 2.2))
    distances = [np.linalg.norm(a - b) for i, a in enumerate(seen) for b in seen[:i]]
    assert min(distances) > 0.15, distances
    assert len(plots._DASHES) == len(plots.PALETTE), "a dash of its own tells each line apart without colour"


def draw(a, b=0):
    fig, ax = plt.subplots(figsize=(3, 2))
    ax.plot([0, a], [b, 1])
    return fig


@pytest.mark.parametrize("options, words", [
    ({}, "at least one option"), (dict(a=[]), "at least one option"), (dict(a=range(13), b=range(5)), "65 frames")])
def test_explore_refuses_too_little_and_too_much(options, words):
    with pytest.raises(ValueError, match=words):
        explore(draw, alt="a line", **options)


def test_explore_prints_a_player_of_every_combination(monkeypatch):
    import base64
    import gzip

    shown = []
    monkeypatch.setenv("PAPERBOOK_PRINT", "1")
    monkeypatch.setattr(EXPLORE, "display", lambda bundle, raw: shown.append(bundle["text/html"]))
    explore(draw, alt="a line", caption="Drag.", a=[1, 2, 3], b=[0, 0.5])
    packed = re.search(r'x-paperbook-frames">([^<]+)<', shown[0])[1]
    frames = json.loads(gzip.decompress(base64.b64decode(packed)))
    assert len(frames) == 6 and len(set(frames)) == 6
    assert "a line (a = 2, b = 0.5)" in frames[3]
    assert shown[0].index(frames[0]) < shown[0].index("<script"), "the first frame shows without JavaScript"
    assert shown[0].count('type="range"') == 2 and 'aria-valuetext="0"' in shown[0]
    monkeypatch.setattr(EXPLORE, "MAX_BYTES", 1000)
    with pytest.raises(ValueError, match="1 MB is the limit"):
        explore(draw, alt="a line", a=[1])


def test_explore_calls_the_code_where_there_is_a_kernel(monkeypatch):
    shown, calls = [], []
    monkeypatch.delenv("PAPERBOOK_PRINT", raising=False)
    monkeypatch.setattr(EXPLORE, "display", shown.append)
    explore(lambda a: calls.append(a) or draw(a), alt="a line", a=[1, 2])
    slider, picture = shown[0].children
    first = picture.value
    slider.value = 2
    assert calls == [1, 2] and picture.value != first and "a = 2" in picture.value


def test_progress_is_silent_in_print(monkeypatch, capfd):
    monkeypatch.setenv("PAPERBOOK_PRINT", "1")
    assert list(progress(range(3), "counting")) == [0, 1, 2]
    assert capfd.readouterr() == ("", "")
    monkeypatch.delenv("PAPERBOOK_PRINT")
    assert list(progress(range(3), "counting", total=3)) == [0, 1, 2]


def test_paperbook_knows_nothing_of_the_press():
    code = ("import sys, paperbook; "
            "bad = {'press', 'myst_nb', 'sphinx', 'papermill', 'torch'} & set(sys.modules); sys.exit(str(bad) if bad else 0)")
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


# --- models -----------------------------------------------------------------------------------------------------------

def tiny(**options):
    torch.manual_seed(0)
    return TinyLM(11, d=16, heads=2, longest=20, **options).double().eval()


def test_the_transformer_is_causal_and_has_the_stated_shapes():
    model, tokens = tiny(widen=2, activation=torch.nn.ReLU), torch.randint(11, (3, 7))
    logits, cache = model(tokens)
    assert logits.shape == (3, 7, 11) and len(cache) == 2 and cache[0][0].shape == (3, 2, 7, 8)
    changed = tokens.clone()
    changed[:, 4:] = (changed[:, 4:] + 1) % 11
    assert torch.allclose(model(changed)[0][:, :4], logits[:, :4])
    assert not torch.allclose(model(changed)[0][:, 4], logits[:, 4])
    assert model.blocks[0].mlp[0].out_features == 32 and isinstance(model.blocks[0].mlp[1], torch.nn.ReLU)


def test_the_transformer_continues_from_its_cache():
    model, tokens = tiny(), torch.randint(11, (3, 7))
    whole, _ = model(tokens)
    first, cache = model(tokens[:, :4])
    mask = torch.ones(3, 7, dtype=torch.bool).tril(4)
    rest, grown = model(tokens[:, 4:], torch.arange(4, 7), mask, cache)
    assert torch.allclose(torch.cat([first, rest], 1), whole) and grown[1][1].shape == (3, 2, 7, 8)
    assert torch.allclose(model(tokens, torch.arange(7), torch.ones(7, 7, dtype=torch.bool).tril())[0], whole)
