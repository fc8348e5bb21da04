"""The command line of the press. Exit codes: 0 all well, 1 the book found something wrong, 2 the call was wrong."""
from __future__ import annotations

import argparse
import os
import re
import signal
import sys
from pathlib import Path

import yaml

from . import contract, registry as registry_module
from .errors import PressError
from .files import plain, write_atomically


def main(arguments: list[str] | None = None) -> int:
    """Run one command; errors that the user can mend are one sentence on stderr."""
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    options = _parser().parse_args(arguments)
    try:
        root = registry_module.find_root()
        return options.run(options, root, registry_module.load(root))
    except PressError as error:
        print(f"press: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of our output has seen enough, as in `press check | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("\npress: stopped; what was finished is kept, and the next run goes on from there.", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="press", description="Run the notebooks and print the book.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run, help: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=help, description=help)
        made.set_defaults(run=run)
        return made

    def cluster(made: argparse.ArgumentParser) -> None:
        made.add_argument("--jobs", type=_positive, metavar="N", help="notebooks at a time (default: one per core)")
        made.add_argument("--scheduler", default="", metavar="ADDRESS", help="a running Dask scheduler, tcp://host:port")

    build = command("build", _build, "execute what has changed, judge it, print the book to _build/html")
    build.add_argument("--only", nargs="+", default=[], metavar="SLUG", help="execute these chapters alone")
    build.add_argument("--force", nargs="+", default=[], metavar="SLUG", help="execute these chapters again")
    build.add_argument("--profile", default="quick", help="quick (default) or full")
    build.add_argument("--seed", type=_seed, default=0)
    build.add_argument("--strict", action="store_true", help="fragile claims and slow chapters fail the build too")
    build.add_argument("--time-limit", type=_positive, metavar="SECONDS", help="per notebook (default: 300 in quick)")
    build.add_argument("--memory-limit", type=_positive, metavar="MB", help="per notebook (default: 2000 in quick)")
    cluster(build)

    run = command("run", _run, "run one chapter with other parameters and print its claims")
    run.add_argument("slug")
    run.add_argument("-p", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"), dest="parameters")
    run.add_argument("--profile", default="quick")

    sweep = command("sweep", _sweep, "run chapters on several seeds; writes book/reproduction.json")
    sweep.add_argument("slugs", nargs="*", metavar="SLUG")
    sweep.add_argument("--seeds", default="0-4", help="such as 0-4 or 0,3,11-13 (default: 0-4)")
    sweep.add_argument("--profile", default="quick")
    cluster(sweep)

    check = command("check", _check, "check every chapter against the contract, running nothing")
    check.add_argument("--fix", action="store_true", help="put bootstrap cells, paper boxes and outputs right first")

    new = command("new", _new, "make a chapter, its exercises and its tests, to be filled in")
    new.add_argument("slug")
    new.add_argument("--part", required=True)

    repository = command("repository", _repository, "set the repository's address everywhere it is needed")
    repository.add_argument("url")
    repository.add_argument("--branch", default="main")

    text = command("text", _text, "show a chapter as py:percent text, or read it back")
    text.add_argument("notebook", type=Path)
    text.add_argument("--back", type=Path, metavar="FILE", help="replace the notebook by this text")

    course = command("coursework", None, "student versions and grading").add_subparsers(required=True, metavar="ACTION")
    release = course.add_parser("release", help="write student versions to _build/coursework")
    release.add_argument("slugs", nargs="*", metavar="SLUG")
    release.set_defaults(run=_release)
    grade = course.add_parser("grade", help="grade DIR/<student>/<slug>-exercises.ipynb, write DIR/grades.csv")
    grade.add_argument("folder", type=Path, metavar="DIR")
    grade.set_defaults(run=_grade)
    return parser


def _build(options, root: Path, registry) -> int:
    from .build import build
    from .display import Progress
    from .scoreboard import totals

    with Progress() as progress:
        report = build(root, registry, only=options.only, force=options.force, profile=options.profile,
                       seed=options.seed, workers=options.jobs, scheduler=options.scheduler, strict=options.strict,
                       seconds=options.time_limit, memory=options.memory_limit and options.memory_limit * 1e6,
                       progress=progress)
    for unit in report.failures:
        _print_failure(unit.path, unit.result["failure"])
    for remark in report.remarks:
        print(f"note: {remark}")
    for problem in report.problems:
        print(f"problem: {problem}", file=sys.stderr)
    kept = (root / "_build/html/index.html").exists()
    if report.html is None:
        print("The book was not printed" + ("; the last good one is still in _build/html." if kept else "."),
              file=sys.stderr)
    executed = sum(not unit.cached and unit.result is not None for unit in report.units)
    count = totals(report.claims)
    print(f"Notebooks: {len(report.units)}, of which {executed} executed now, {len(report.failures)} failed")
    print(f"Claims:    {sum(count.values())} in {len(report.claims)} chapters")
    print("Verdicts:  " + (", ".join(f"{number} {verdict}" for verdict, number in count.items()) or "none"))
    if report.html:
        print(f"Open:      {(report.html / 'index.html').resolve().as_uri()}")
    print(f"Wall time: {report.seconds:.1f} s")
    return 1 if report.problems or report.failures else 0


def _print_failure(path: Path, failure: dict) -> None:
    place = f"cell {failure['cell']} (code cell {failure['number']})" if failure["cell"] else "before the first cell"
    print(f"\nFAILED {path}\n  {place}: {failure['error']}", file=sys.stderr)
    for line in failure["traceback"].splitlines():
        print(f"  | {line if sys.stderr.isatty() else plain(line)}", file=sys.stderr)


def _run(options, root: Path, registry) -> int:
    import nbformat

    from .build import check_profile
    from .cache import code_cells
    from .execute import Job, execute
    from .text import read_notebook

    paper = registry[options.slug]
    limits = check_profile(options.profile)
    notebook = read_notebook(root / paper.notebook)
    cell = next((c for c in code_cells(notebook) if "parameters" in c.metadata.get("tags", [])), None)
    known = re.findall(r"^(\w+)\s*=", cell.source if cell else "", re.M)
    parameters = {"profile": options.profile}
    for name, value in options.parameters:
        if name not in known:
            raise PressError(f"{paper.slug} has no parameter {name!r}{registry_module.did_you_mean(name, known)}")
        parameters[name] = yaml.safe_load(value)
    print(f"Running {paper.slug} with {parameters} ...", flush=True)
    result = execute(Job(paper.slug, nbformat.writes(notebook), parameters, **limits))
    kept = root / "_build/runs" / f"{paper.slug}-{'-'.join(f'{k}{v}' for k, v in sorted(parameters.items()))}.ipynb"
    write_atomically(kept, result["notebook"])
    _print_claims(result["claims"])
    print(f"{result['seconds']:.1f} s, {result['cpu_seconds']:.1f} CPU s, {result['peak_memory'] / 1e9:.2f} GB at most; "
          f"executed notebook: {kept.relative_to(root)}")
    if result["failure"]:
        _print_failure(paper.notebook, result["failure"])
    return 1 if result["failure"] else 0


def _print_claims(claims: list[dict]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("claim", "statement", "paper", "measured", "control", "verdict")
    for claim in claims:
        table.add_row(claim["id"], claim["statement"], claim["paper"], claim["measured_text"], claim["control_text"],
                      claim["verdict"])
    Console().print(table)


def _sweep(options, root: Path, registry) -> int:
    from .display import Progress
    from .sweep import parse_seeds, sweep

    with Progress() as progress:
        content, failures = sweep(root, registry, options.slugs, parse_seeds(options.seeds), profile=options.profile,
                                  scheduler=options.scheduler, workers=options.jobs, progress=progress)
    for slug, claims in content["chapters"].items():
        for id, claim in claims.items():
            verdicts = ", ".join(f"{count} {verdict}" for verdict, count in claim["verdicts"].items())
            spread = (f"; median {claim['median']:.4g}, {claim['low']:.4g} to {claim['high']:.4g}"
                      if claim["median"] is not None else "")
            print(f"{slug} {id}: {verdicts}{spread}{'  FRAGILE' if claim['fragile'] else ''}")
    for failure in failures:
        print(f"failed: {failure}", file=sys.stderr)
    if failures:
        print("book/reproduction.json was left as it was; run the sweep again after mending.", file=sys.stderr)
    return 1 if failures else 0


def _check(options, root: Path, registry) -> int:
    if options.fix:
        for path in contract.fix(root, registry):
            print(f"put right: {path}")
    findings = contract.check(root, registry)
    for finding in findings:
        print(finding)
    print(f"{len(findings)} findings in {len(registry.papers)} chapters")
    return 1 if findings else 0


def _new(options, root: Path, registry) -> int:
    from .scaffold import new

    for path in new(root, registry, options.slug, options.part):
        print(f"made {path}")
    return 0


def _repository(options, root: Path, registry) -> int:
    if not re.fullmatch(r"https?://\S+|file://\S+|git@\S+", options.url):
        raise PressError(f"{options.url!r} is not a repository's address; give one such as https://github.com/NAME/paperbook.")
    path = root / "_config.yml"
    config, found = re.subn(r"(?m)^(  url: ).*$", rf"\g<1>{options.url.rstrip('/')}", path.read_text("utf-8"))
    config, found_branch = re.subn(r"(?m)^(  branch: ).*$", rf"\g<1>{options.branch}", config)
    if (found, found_branch) != (1, 1):
        raise PressError("_config.yml should have one `url:` and one `branch:` under `repository:`; restore them.")
    write_atomically(path, config)
    print("put right: _config.yml")
    for changed in contract.fix(root, registry):
        print(f"put right: {changed}")
    return 0


def _text(options, root: Path, registry) -> int:
    from .text import from_text, read_notebook, to_text, write_notebook

    if options.back:
        write_notebook(from_text(options.back.read_text("utf-8")), options.notebook)
    else:
        sys.stdout.write(to_text(read_notebook(options.notebook)))
    return 0


def _release(options, root: Path, registry) -> int:
    from .coursework import release

    for path in release(root, registry, options.slugs):
        print(f"made {path.relative_to(root)}")
    return 0


def _grade(options, root: Path, registry) -> int:
    from .coursework import grade

    if not options.folder.is_dir():
        raise PressError(f"{options.folder} is not a folder; give the one that holds <student>/<slug>-exercises.ipynb.")
    print(f"made {grade(root, registry, options.folder)}")
    return 0


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} should be 1 or more")
    return value


def _seed(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} should be 0 or more")
    return value
