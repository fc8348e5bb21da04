"""Exercises: full marks for the solution, none for the blank one, and every hidden test rejects its mutant."""
import csv
import importlib.util
import json
import re

import nbformat
import pytest
from conftest import ROOT
from press import coursework, registry
from press.cache import code_cells
from press.cli import main
from press.text import read_notebook

PAPERS = registry.load(ROOT).papers


def mutants(paper) -> dict:
    spec = importlib.util.spec_from_file_location(f"mutants_of_{paper.slug}", ROOT / paper.tests)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.MUTANTS


def hidden(source: str) -> str:
    return "\n".join(block for block in coursework.HIDDEN_BODY.findall(source))


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.slug)
def test_hidden_tests_reject_plausible_wrong_answers(paper):
    wrong = mutants(paper)
    cells = code_cells(read_notebook(ROOT / paper.exercises))
    solutions = {c.metadata.nbgrader.grade_id: c for c in cells if c.metadata.get("nbgrader", {}).get("solution")}
    graded = [c for c in cells if c.metadata.get("nbgrader", {}).get("grade")]
    assert set(wrong) == set(solutions), "each solution has its mutants"
    rejected = set()
    for grade_id, answers in wrong.items():
        assert answers, f"{grade_id} has no mutant"
        for name, answer in answers.items():
            space, failed = {"__name__": "exercises"}, []
            for cell in cells:
                tests = hidden(cell.source)
                if cell in graded:
                    try:
                        exec(tests, space)
                    except Exception:
                        failed.append(cell.metadata.nbgrader.grade_id)
                else:
                    exec(answer if cell is solutions[grade_id] else cell.source, space)
            assert failed, f"the wrong answer '{name}' to {grade_id} passes every hidden test"
            rejected |= set(failed)
    assert rejected == {c.metadata.nbgrader.grade_id for c in graded}, "each hidden test rejects some mutant"


def test_release_and_grade(tmp_path, monkeypatch, capsys):
    """The whole way of a course, with real nbgrader: hand out, collect, grade."""
    assert main(["coursework", "release"]) == 0
    for paper in PAPERS:
        name = paper.exercises.name
        released = ROOT / "_build/coursework" / name
        text = released.read_text()
        assert "SOLUTION" not in text and "HIDDEN" not in text and "NotImplementedError" in text
        for cell in code_cells(read_notebook(ROOT / paper.exercises)):
            for block in coursework.HIDDEN_BODY.findall(cell.source):
                assert json.dumps(block.strip().splitlines()[-1])[1:-1] not in text, "a hidden test was handed out"
        for student, source in (("solved", ROOT / paper.exercises), ("blank", released)):
            place = tmp_path / student / name
            place.parent.mkdir(exist_ok=True)
            place.write_text(source.read_text())
    first = PAPERS[0].exercises.name
    cheat = read_notebook(ROOT / "_build/coursework" / first)
    for cell in code_cells(cheat):
        if cell.metadata.get("nbgrader", {}).get("grade"):
            cell.source = "pass  # looks fine to me"
    (tmp_path / "cheat").mkdir()
    nbformat.write(cheat, tmp_path / "cheat" / first)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / first).write_text("{half a noteb")

    assert main(["coursework", "grade", str(tmp_path)]) == 0
    rows = list(csv.DictReader((tmp_path / "grades.csv").open()))
    totals = {(row["student"], row["chapter"]): row for row in rows if row["exercise"] == "total"}
    for paper in PAPERS:
        solved, blank = totals["solved", paper.slug], totals["blank", paper.slug]
        assert float(solved["points"]) == float(solved["max_points"]) > 0
        assert float(blank["points"]) == 0 and blank["max_points"] == solved["max_points"]
    assert float(totals["cheat", PAPERS[0].slug]["points"]) == 0, "edited tests make no difference"
    assert float(totals["broken", PAPERS[0].slug]["points"]) == 0
    assert "not a readable notebook" in totals["broken", PAPERS[0].slug]["remark"]
    assert len([row for row in rows if row["student"] == "solved"]) == sum(
        len(re.findall(r"### BEGIN HIDDEN", (ROOT / paper.exercises).read_text())) + 1 for paper in PAPERS)
