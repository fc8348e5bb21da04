# Two commands: `make book` prints the book, `make test` proves it. Python 3.10 to 3.13 is needed.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: book test lab clean

book: .venv/.installed
	$(BIN)/press build

test: .venv/.installed
	$(BIN)/python -m pytest -n 2 --dist loadgroup

lab: .venv/.installed
	$(BIN)/jupyter lab notebooks

clean:
	rm -rf _build .pytest_cache .hypothesis

.venv/.installed: requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' || { \
	  echo "Paperbook needs Python 3.10 to 3.13; name one with 'make PYTHON=python3.12 ...'." >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@
