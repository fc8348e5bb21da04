"""A chapter on Colab: Colab's own versions, one notebook file in an empty folder, no copy of this repository.

The first cell of the notebook fetches the library through its real `pip install git+...`, from a git repository made
of the working tree. PyTorch is the CPU build of this machine, lent to the other environment.
"""
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import nbformat
import pytest
import torch
from conftest import ROOT
from press import contract, registry
from press.cache import code_cells
from press.execute import claims_of
from press.text import read_notebook

pytestmark = pytest.mark.xdist_group("colab")
VERSIONS = ROOT / "tests/colab-versions.txt"
PAPERS = registry.load(ROOT).papers


def run(*command, **more) -> str:
    done = subprocess.run([str(part) for part in command], text=True, capture_output=True, **more)
    assert done.returncode == 0, f"{command}:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def colab() -> Path:
    """The folder of an environment with Colab's versions; made once for each version of the list."""
    mark = hashlib.sha256(VERSIONS.read_bytes() + sys.version.encode() + torch.__version__.encode()).hexdigest()[:12]
    folder = ROOT / "_build" / f"colab-{mark}"
    if not (folder / "ready").exists():
        shutil.rmtree(folder, ignore_errors=True)
        run(sys.executable, "-m", "venv", folder)
        run(folder / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", VERSIONS,
            *(line.split(";")[0] for line in metadata.requires("torch") if "extra" not in line and "nvidia" not in line
              and "triton" not in line and "cuda" not in line))
        _lend_torch(next((folder / "lib").glob("python*/site-packages")))
        (folder / "ready").touch()
    return folder


def _lend_torch(site: Path) -> None:
    home = Path(torch.__file__).parents[1]
    for pattern in ("torch", "torchgen", "functorch", "torch-*.dist-info", "nvidia*", "triton*", "cuda*"):
        for item in home.glob(pattern):
            (site / item.name).symlink_to(item)


@pytest.fixture(scope="module")
def repository(tmp_path_factory) -> str:
    """A git repository of the working tree as it is now; its address."""
    folder = tmp_path_factory.mktemp("repository")
    names = run("git", "ls-files", "-co", "--exclude-standard", "-z", cwd=ROOT).split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    run("git", "init", "-q", "-b", "main", cwd=folder)
    run("git", "add", "-A", cwd=folder)
    run("git", "-c", "user.name=Test", "-c", "user.email=test@example.org", "commit", "-qm", "as it is", cwd=folder)
    return folder.as_uri()


def freeze(colab: Path) -> dict[str, str]:
    listed = json.loads(run(colab / "bin/python", "-m", "pip", "list", "--format", "json",
                            "--disable-pip-version-check"))
    return {re.sub(r"[-_.]+", "-", item["name"].lower()): item["version"] for item in listed}


RUN = """
import asyncio, json, sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read("chapter.ipynb", as_version=4)
NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
nbformat.write(notebook, "done.ipynb")
"""


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.slug)
def test_a_chapter_runs_on_colab(paper, colab, repository, tmp_path):
    notebook = read_notebook(ROOT / paper.notebook)
    url, branch = contract.repository(ROOT)
    first = code_cells(notebook)[0]
    assert f"git+{url}@{branch}" in first.source
    first.source = first.source.replace(f"git+{url}@{branch}", f"git+{repository}@main")
    nbformat.write(notebook, tmp_path / "chapter.ipynb")
    run(colab / "bin/python", "-m", "pip", "uninstall", "--quiet", "--yes", "paperbook")
    before = freeze(colab)

    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PAPERBOOK_PRINT", "VIRTUAL_ENV")}
    run(colab / "bin/python", "-c", RUN, cwd=tmp_path,
        env={**environment, "PATH": f"{colab / 'bin'}{os.pathsep}{environment['PATH']}", "PYDEVD_DISABLE_FILE_VALIDATION": "1"})

    done = nbformat.read(tmp_path / "done.ipynb", as_version=4)
    found = {claim["id"]: claim["verdict"] for claim in claims_of(done)}
    assert set(found) == set(paper.claims) and "undecided" not in found.values()
    widgets = [output for cell in code_cells(done) for output in cell.outputs
               if "application/vnd.jupyter.widget-view+json" in output.get("data", {})]
    assert widgets, "explore built its live sliders"
    after = freeze(colab)
    assert after.pop("paperbook") and after == before, "what Colab has stays as it was"
    for line in VERSIONS.read_text().splitlines():
        if "==" in line:
            name, version = line.split("==")
            assert after[re.sub(r"[-_.]+", "-", name.lower())] == version.strip()
