"""`press build` as a user meets it: what is executed again, and what is not; verdicts; the last good book."""
import re
import shutil

import nbformat
import pytest
from conftest import CLAIM


def executed(out: str) -> int:
    return int(re.search(r"of which (\d+) executed now", out)[1])


def edit(book, name: str, cell: int, source: str) -> None:
    path = book.path(name)
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[cell].source = source
    nbformat.write(notebook, path)


def page(book, name: str) -> str:
    return (book.root / f"_build/html/notebooks/language-models/{name}.html").read_text()


def test_only_what_decides_the_outputs_executes_again(book, root, tmp_path):
    book.add("one", CLAIM, "# Prose of one.", "print('old', 'output')", claims={"C1": "reproduced"})
    book.add("two", "print(seed)")
    code, out, err = book.press("build")
    assert (code, executed(out)) == (0, 4), err
    assert "1 reproduced" in out and "file://" in out and "Wall time" in out
    assert "Warning" not in err and "WARNING" not in err, "no tool's own warning reaches the terminal"
    assert "old output" in page(book, "one")

    code, out, err = book.press("build")
    assert (code, executed(out)) == (0, 0), err
    assert "Nothing on the pages has changed" in out

    edit(book, "one", 3, "# New prose.\n\nBrighter words.")
    code, out, err = book.press("build")
    assert (code, executed(out)) == (0, 0), "a prose edit executes nothing"
    assert "Brighter words" in page(book, "one") and "old output" in page(book, "one")

    edit(book, "one", 4, "print('new', 'output')")
    code, out, err = book.press("build")
    assert (code, executed(out)) == (0, 1), "a code edit executes its notebook alone"
    assert "new output" in page(book, "one") and "old output" not in page(book, "one")

    style = book.root / "book/_static/paperbook.css"
    style.write_text(style.read_text() + "/* a new coat of paint */")
    code, out, err = book.press("build")
    assert (code, executed(out)) == (0, 0)
    assert "a new coat of paint" in (book.root / "_build/html/_static/paperbook.css").read_text()

    code, out, err = book.press("build", "--force", "two")
    assert (code, executed(out)) == (0, 2), "--force executes a chapter and its exercises"

    library = tmp_path / "lib"
    shutil.copytree(root / "lib", library)
    with (library / "paperbook/training.py").open("a") as file:
        file.write("\n# an edit of the library\n")
    code, out, err = book.press("build", PYTHONPATH=str(library))
    assert (code, executed(out)) == (0, 4), "an edit of paperbook executes everything"
    assert book.processes() == []


def test_another_verdict_than_expected_fails_with_both_named(book):
    book.add("one", CLAIM, claims={"C1": "partly", "C2": "out of reach"})
    code, out, err = book.press("build", "--only", "one")
    assert code == 1
    assert "one C1: book/papers.yml expects 'partly', and the notebook found 'reproduced'" in err
    assert "one C2: book/papers.yml expects 'out of reach', and the notebook found 'no such claim'" in err


def test_a_claim_whose_control_passes_fails_the_build(book):
    book.add("one", CLAIM.replace("control=5", "control=0"), claims={"C1": "reproduced"})
    code, out, err = book.press("build")
    assert code == 1 and "one C1 is undecided" in err


def test_warnings_and_figures_without_alt_text_do_not_reach_the_page(book):
    book.add("one", "import warnings; warnings.warn('mind the gap')",
             "import matplotlib.pyplot as plt; _ = plt.plot([1, 2])")
    code, out, err = book.press("build")
    assert code == 1
    assert "cell cell-2: it writes to stderr" in err and "cell cell-3: it shows a figure without alt text" in err


def test_the_last_good_book_stays(book):
    book.add("one", "print('good')")
    assert book.press("build")[0] == 0
    edit(book, "one", 2, "1 / 0")
    code, out, err = book.press("build")
    assert code == 1 and "the last good one is still in _build/html" in err
    assert "good" in page(book, "one")
    edit(book, "one", 2, "print('good')")
    edit(book, "one", 0, "# One\n\n{ref}`nowhere`")
    code, out, err = book.press("build")
    assert code == 1 and "nowhere" in err and "WARNING" in err, "warnings of Jupyter Book are failures"
    code, out, err = book.press("build")
    assert code == 1 and "nowhere" in err, "and they do not go away by building again"
    assert "good" in page(book, "one")


@pytest.mark.parametrize("arguments, words", [
    (["build", "--profile", "quik"], "did you mean quick"),
    (["build", "--only", "onne"], "did you mean one"),
    (["run", "onne"], "did you mean one"),
    (["run", "one", "-p", "sed", "1"], "did you mean seed"),
    (["run", "one", "--profile", "fast"], "There is no profile 'fast'"),
    (["sweep", "--seeds", "four"], "give a range such as 0-4"),
    (["sweep", "--scheduler", "tcp://127.0.0.1:1"], "No Dask scheduler answers"),
    (["new", "One Two", "--part", "language-models"], "is not a slug"),
    (["new", "three", "--part", "language-model"], "did you mean language-models"),
    (["repository", "nowhere"], "is not a repository's address"),
    (["coursework", "grade", "no-such-folder"], "is not a folder"),
])
def test_bad_input_gets_one_sentence_and_exit_code_2(book, arguments, words):
    book.add("one", "print(seed)")
    code, out, err = book.press(*arguments)
    assert code == 2
    assert words in err and "Traceback" not in err
    assert len(err.strip().splitlines()) == 1


def test_broken_files_are_named(book):
    book.add("one", "print(seed)")
    book.path("one").write_text('{"cells": [')
    code, out, err = book.press("build")
    assert code == 2 and "one.ipynb is not a readable notebook" in err
    papers = book.root / "book/papers.yml"
    text = papers.read_text()
    for old, new, words in [("level: 1", "lebel: 1", "the field `level` is missing"),
                            ("part: language-models", "part: langage", "there is no part 'langage'"),
                            ("minutes: 1", "minutes: soon", "`minutes` is 'soon'"),
                            ("papers:", "papers: [", "not valid YAML")]:
        papers.write_text(text.replace(old, new))
        code, out, err = book.press("check")
        assert code == 2 and words in err and len(err.strip().splitlines()) == 1, err
