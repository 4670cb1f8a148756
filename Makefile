# Each target sets up .venv by itself on first use, and rebuilds the extension when it must.
VENV   := .venv
PY     := $(VENV)/bin/python
NATIVE := $(shell find native -type f)
PIP    := $(PY) -m pip install --quiet --disable-pip-version-check

.PHONY: help demo test lint format figures bench clean

help:
	@echo "make demo    complete handwritten digits and draw them (a minute)"
	@echo "make test    run the tests"
	@echo "make lint    check format, types, imports and spelling"
	@echo "make format  format Python and C++"
	@echo "make figures run the examples of docs, and make their figures"
	@echo "make bench   time okforest beside scikit-learn"
	@echo "make clean   remove all that make has made"

$(VENV)/.tools: pyproject.toml tools/setup.sh
	@sh tools/setup.sh $(VENV)
	@touch $@

$(VENV)/.built: $(VENV)/.tools $(NATIVE)
	@echo "okforest: building the extension"
	@$(PIP) --no-build-isolation --no-deps --editable .
	@touch $@

$(VENV)/.lint: $(VENV)/.built
	@$(PIP) --group lint
	@touch $@

demo: $(VENV)/.built
	@$(PY) examples/complete_digits.py

test: $(VENV)/.built
	$(PY) -m pytest -n auto

lint: $(VENV)/.lint
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(PY) -m nanobind.stubgen -q -m okforest._core -o src/okforest/_core.pyi
	$(PY) -m mypy
	$(VENV)/bin/lint-imports
	$(VENV)/bin/clang-format --dry-run --Werror $(filter %.cpp %.hpp,$(NATIVE))
	$(VENV)/bin/codespell

format: $(VENV)/.lint
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .
	$(VENV)/bin/clang-format -i $(filter %.cpp %.hpp,$(NATIVE))

figures: $(VENV)/.built
	$(PY) docs/make_figures.py

bench: $(VENV)/.built
	$(PY) benchmarks/compare/scikit_learn.py

clean:
	rm -rf $(VENV) build dist src/okforest/_core.pyi
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -exec rm -rf {} +
