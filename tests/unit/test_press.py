"""The press in pieces: registry, cache, contract, text, definitions, sweep, scoreboard."""
import json
import shutil
from pathlib import Path

import nbformat
import pytest
import yaml
from conftest import ROOT, notebook
from hypothesis import given, strategies as st
from press import cache, contract, coursework, registry, scaffold, scoreboard, site
from press.definitions import definitions, only_defines
from press.errors import PressError
from press.files import write_atomically
from press.sweep import parse_seeds, summary
from press.text import from_text, read_notebook, to_text, write_notebook


@pytest.fixture
def scaffolded(tmp_path) -> Path:
    """A book with one chapter as `press new` makes it."""
    for name in ("_config.yml", "requirements.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "book").mkdir()
    (tmp_path / "book/references.bib").write_text("")
    parts = (ROOT / "book/papers.yml").read_text().split("papers:")[0]
    (tmp_path / "book/papers.yml").write_text(parts + "papers:\n")
    groups = [dict(caption=name, chapters=[dict(file=f"book/{name}")]) for name in ("first", "last")]
    (tmp_path / "_toc.yml").write_text(yaml.safe_dump(dict(format="jb-book", root="book/intro", parts=groups)))
    scaffold.new(tmp_path, registry.load(tmp_path), "my-paper", "language-models")
    return tmp_path


def test_press_new_passes_the_contract(scaffolded):
    assert contract.check(scaffolded) == []
    scaffold.new(scaffolded, registry.load(scaffolded), "other-paper", "optimization-theory")
    assert contract.check(scaffolded) == []
    captions = [part["caption"] for part in yaml.safe_load((scaffolded / "_toc.yml").read_text())["parts"]]
    assert captions == ["first", "Optimization and learning theory", "Language models", "last"]
    with pytest.raises(PressError, match="already"):
        scaffold.new(scaffolded, registry.load(scaffolded), "my-paper", "language-models")


def spoil(root: Path, which: str, change) -> list[str]:
    path = getattr(registry.load(root)["my-paper"], which)
    made = read_notebook(root / path)
    change(made)
    write_notebook(made, root / path)
    return [str(finding) for finding in contract.check(root)]


def cell(made, id):
    return next(c for c in made.cells if c.id == id)


def remove(made, id):
    made.cells = [c for c in made.cells if c.id != id]


@pytest.mark.parametrize("which, change, words", [
    ("notebook", lambda n: cell(n, "title").update(source="# Other\nline"), "its title is not the registry's"),
    ("notebook", lambda n: cell(n, "paper-box").update(source="old"), "the box of the paper"),
    ("notebook", lambda n: cell(n, "bootstrap").update(source="import paperbook"), "not the bootstrap cell"),
    ("notebook", lambda n: cell(n, "bootstrap").metadata.update(tags=["bootstrap"]), "would show on the page"),
    ("notebook", lambda n: cell(n, "parameters").update(source="seed = 1"), "not the parameters cell"),
    ("notebook", lambda n: remove(n, "limits"), "missing: What this chapter cannot show"),
    ("notebook", lambda n: remove(n, "problem-seen"), "no sentence stands between"),
    ("notebook", lambda n: cell(n, "explore").update(source="x = 1\n" * 26), "it has 26 lines"),
    ("notebook", lambda n: remove(n, "explore"), "it calls explore() 0 times"),
    ("notebook", lambda n: remove(n, "one-more-figure"), "it calls show() 3 times"),
    ("notebook", lambda n: remove(n, "method-asserts"), "it asserts too little"),
    ("notebook", lambda n: remove(n, "claim-c1"), "claim C1 is missing in the notebook"),
    ("notebook", lambda n: cell(n, "claims-table").update(source='chapter.out_of_reach("C3", "x", paper="", needs="")'),
     "claim C3 is missing in the registry"),
    ("notebook", lambda n: cell(n, "claim-c1").update(source='chapter.claim("C1", "x", paper="", measured=0.5)'),
     "measured of claim C1 is a constant"),
    ("notebook", lambda n: cell(n, "claim-c1").update(source='chapter.claim("C1", "x", paper="", measured=y)'),
     "claim C1 has no control="),
    ("notebook", lambda n: cell(n, "imports").update(source="import press"), "it imports press"),
    ("notebook", lambda n: cell(n, "imports").update(execution_count=3), "it has outputs or a count"),
    ("notebook", lambda n: cell(n, "idea").update(source="## The idea in one minute\nObviously."), "the text says 'Obviously'"),
    ("notebook", lambda n: cell(n, "reading").update(source="## Further reading\n{cite}`nobody2020`"), "it cites nobody2020"),
    ("exercises", lambda n: remove(n, "median"), "it has 2 exercises"),
    ("exercises", lambda n: cell(n, "median").update(source="median = max"), "its solution is not between the markers"),
    ("exercises", lambda n: cell(n, "test-median").update(source="assert True"), "it has no hidden tests"),
    ("exercises", lambda n: cell(n, "test-median").metadata.nbgrader.update(points=0), "it gives no points"),
    ("exercises", lambda n: cell(n, "test-median").metadata.nbgrader.update(grade_id="bear"), "the grade_id bear is used twice"),
])
def test_the_contract_finds(scaffolded, which, change, words):
    findings = spoil(scaffolded, which, change)
    assert any(words in finding for finding in findings), findings
    name = str(getattr(registry.load(scaffolded)["my-paper"], which))
    assert all(finding.startswith((name, "_toc.yml")) and "; " in finding for finding in findings)


def test_an_id_used_twice_is_found_before_nbformat_mends_it(scaffolded):
    path = scaffolded / registry.load(scaffolded)["my-paper"].notebook
    path.write_text(path.read_text().replace('"id": "reading"', '"id": "limits"'))
    assert [f.cell for f in contract.check(scaffolded)] == ["limits"]


def test_fix_puts_right_what_needs_no_thought(scaffolded):
    findings = spoil(scaffolded, "notebook", lambda n: (cell(n, "imports").update(execution_count=1),
                                                         cell(n, "paper-box").update(source=""),
                                                         cell(n, "bootstrap").update(source="")))
    assert len(findings) == 3
    assert contract.fix(scaffolded) == [registry.load(scaffolded)["my-paper"].notebook]
    assert contract.check(scaffolded) == []


def test_the_repositorys_address_stands_in_every_first_cell(scaffolded, monkeypatch, capsys):
    from press.cli import main

    monkeypatch.chdir(scaffolded)
    assert main(["repository", "https://example.org/me/paperbook", "--branch", "trunk"]) == 0
    assert contract.check(scaffolded) == []
    for path in (scaffolded / "notebooks").rglob("*.ipynb"):
        assert "git+https://example.org/me/paperbook@trunk" in path.read_text()


def test_the_real_book_keeps_the_contract(root):
    assert [str(finding) for finding in contract.check(root)] == []


def test_one_address_for_the_whole_book(root):
    url, branch = contract.repository(root)
    for path in (root / "notebooks").glob("*/*.ipynb"):  # not JupyterLab's checkpoints
        assert f"git+{url}@{branch}" in path.read_text(), path


def test_text_and_notebook_are_the_same_thing(scaffolded):
    for path in (scaffolded / "notebooks").rglob("*.ipynb"):
        made = read_notebook(path)
        again = from_text(to_text(made))
        assert [(c.id, c.cell_type, c.source, c.metadata) for c in again.cells] == \
               [(c.id, c.cell_type, c.source, c.metadata) for c in made.cells]


@pytest.mark.parametrize("source, defines", [
    ("import math", True), ("def f(x):\n    return x", True), ("class A: ...", True), ("LIMIT = 3", True),
    ("A, B = 1, 2", True), ('"""Words."""\nN = 4', True), ("x = 3", False), ("f(3)", False), ("LIMIT = 3\nprint(1)", False),
    ("for X in range(3): pass", False), ("%pip install x", False), ("", False)])
def test_cells_that_define_and_nothing_else(source, defines):
    assert only_defines(source) is defines


def test_definitions_load_without_the_experiments(scaffolded):
    page = definitions("my-paper", scaffolded)
    assert page.estimate([[0.0, 1.0, 9.0]], "median")[0] == 1
    assert not hasattr(page, "chapter") and not hasattr(page, "bias")


def test_the_key_knows_code_and_parameters_and_not_prose(root):
    def key(*cells, **parameters):
        return cache.key(notebook(*cells), parameters, root)

    base = key("# Words", "x = 1", seed=0)
    assert key("# Other words", "x = 1", seed=0) == base
    assert key("# Words", "# More", "x = 1", seed=0) == base
    assert len({base, key("# Words", "x = 2", seed=0), key("# Words", "x = 1", seed=1)}) == 3


def test_outputs_meet_their_cells_after_a_prose_edit():
    executed = notebook("# Old", "x = 1", "print(x)")
    executed.cells[2].outputs = [nbformat.v4.new_output("stream", name="stdout", text="1")]
    injected = nbformat.v4.new_code_cell("x = 1", metadata={"tags": ["injected-parameters"]})
    executed.cells.insert(2, injected)
    now = notebook("# New", "x = 1", "# Another", "print(x)")
    page = site.with_outputs(now, {"notebook": nbformat.writes(executed)})
    assert [c.source for c in page.cells] == [c.source for c in now.cells]
    assert page.cells[3].outputs[0].text == "1" and now.cells[3].outputs == []


def test_the_page_of_exercises_hides_what_students_must_not_see(scaffolded):
    page = coursework.for_the_page(read_notebook(scaffolded / registry.load(scaffolded)["my-paper"].exercises))
    text = nbformat.writes(page)
    assert "HIDDEN TESTS" not in text and "the values come in any order" not in text
    assert "BEGIN SOLUTION" not in text and "sorted(x)" in text
    assert all("hide-input" in c.metadata.tags for c in page.cells if c.metadata.get("nbgrader", {}).get("solution"))


@given(st.binary(max_size=200))
def test_a_file_is_whole_or_not_there(data):
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "deep/file"
        write_atomically(path, data)
        assert path.read_bytes() == data and [p.name for p in path.parent.iterdir()] == ["file"]


@pytest.mark.parametrize("text, seeds", [("0-2", [0, 1, 2]), ("3", [3]), ("0,4-5,4", [0, 4, 5])])
def test_seeds(text, seeds):
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["", "a", "3-1", "1-"])
def test_seeds_that_are_none(text):
    if text == "1-":
        assert parse_seeds(text) == [1]
    else:
        with pytest.raises(PressError):
            parse_seeds(text)


def test_a_sweep_counts_and_finds_what_is_fragile():
    def run(verdict, measured):
        return [dict(id="C1", verdict=verdict, measured=measured), dict(id="C2", verdict="out of reach", measured=None)]

    made = summary([run("reproduced", 1.0), run("partly", 3.0), run("reproduced", 2.0)])
    assert made["C1"] == dict(runs=3, held=2, fragile=True, verdicts={"partly": 1, "reproduced": 2}, median=2.0, low=1.0,
                              high=3.0)
    assert made["C2"]["runs"] == 0 and not made["C2"]["fragile"] and made["C2"]["median"] is None


def test_the_scoreboard_shows_every_claim_and_its_spread(scaffolded):
    claims = {"my-paper": [dict(id="C1", statement="a < b", paper="1.4x", verdict="partly", criterion="x", measured=1.2,
                                control=1.0, measured_text="1.20", control_text="1.00", note="")]}
    swept = summary([[dict(id="C1", verdict=v, measured=m)] for v, m in [("partly", 1.2), ("reproduced", 1.5)]])
    (scaffolded / "book/reproduction.json").write_text(json.dumps(
        dict(chapters={"my-paper": swept}, seeds=[0, 1], date="2026-01-01")))
    files = {"book/scoreboard.md": scoreboard.BOARD.encode(), "book/library.md": scoreboard.LIBRARY.encode()}
    made = scoreboard.pages(scaffolded, registry.load(scaffolded), claims, files)
    board, library = made["book/scoreboard.md"].decode(), made["book/library.md"].decode()
    assert "a &lt; b" in board and "1 of 2; median 1.35, 1.2 to 1.5" in board and "fragile" in board
    assert "seeds 0 to 1" in board and "1 claims" in board
    assert "My paper" in library and "◐" in library
    assert json.loads(made["book/_static/scoreboard.json"])["claims"][0]["verdict"] == "partly"


def test_a_page_that_asks_another_host_is_found(tmp_path):
    (tmp_path / "a.html").write_text('<a href="https://x.org">fine</a><script src="https://cdn.x.org/a.js"></script>')
    (tmp_path / "b.html").write_text("x" * (site.PAGE_BYTES + 1))
    problems = site.page_problems(tmp_path)
    assert len(problems) == 2 and "another host" in problems[0] and "MB" in problems[1]
