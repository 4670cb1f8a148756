# Each target sets up .venv by itself on first use, and rebuilds the extension when it must.
VENV   := .venv
PY     := $(VENV)/bin/python
NATIVE := $(shell find native -type f)
PIP    := $(PY) -m pip install --quiet --disable-pip-version-check

.PHONY: help demo test sanitize lint format figures bench bench-full scaling clean

help:
	@echo "make demo      complete handwritten digits and draw them (a minute)"
	@echo "make test      run the tests"
	@echo "make sanitize  run the tests on a build that watches memory and arithmetic"
	@echo "make lint      check format, types, imports and spelling"
	@echo "make format    format Python and C++"
	@echo "make figures   run the examples of docs, and make their figures"
	@echo "make bench     time okforest beside its peers, and write benchmarks/RESULTS.md"
	@echo "make bench-full  the same with 100 trees and a large forest (long)"
	@echo "make scaling   measure and draw how the cost of growing grows"
	@echo "make clean     remove all that make has made"

$(VENV)/.tools: pyproject.toml tools/setup.sh
	@sh tools/setup.sh $(VENV)
	@touch $@

$(VENV)/.built: $(VENV)/.tools $(NATIVE)
	@echo "okforest: building the extension"
	@$(PIP) --no-build-isolation --no-deps --editable .
	@touch $@

$(VENV)/.lint: $(VENV)/.built
	@sh tools/setup.sh $(VENV) lint
	@touch $@

# A peer that cannot be installed is skipped by its comparison, which says why.
$(VENV)/.bench: $(VENV)/.built
	@sh tools/setup.sh $(VENV) bench || echo "okforest: going on without the peers that are missing"
	@touch $@

demo: $(VENV)/.built
	@$(PY) examples/complete_digits.py

# A worker a core, of one thread each: more threads would wait for each other.
test: $(VENV)/.built
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(PY) -m pytest -n auto

# The tests again, with a build that stops at any wrong access to memory or undefined arithmetic. It
# has an environment of its own, which borrows the packages of the other.
SANITIZED := build/sanitize
sanitize: $(VENV)/.built
	$(PY) -m venv --without-pip $(SANITIZED)/venv
	$(PY) -c "import site; print(site.getsitepackages()[0])" > $(SANITIZED)/borrowed
	cp $(SANITIZED)/borrowed "$$($(SANITIZED)/venv/bin/python -c 'import site; print(site.getsitepackages()[0])')/borrowed.pth"
	$(PY) -m pip --python $(SANITIZED)/venv/bin/python install --quiet --no-deps \
		--no-build-isolation --force-reinstall --config-settings=build-dir=$(SANITIZED)/build \
		--config-settings=cmake.define.OKFOREST_SANITIZE=ON .
	LD_PRELOAD="$$($${CXX:-c++} -print-file-name=libasan.so) $$($${CXX:-c++} -print-file-name=libubsan.so)" \
		ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
		$(SANITIZED)/venv/bin/python -m pytest -n auto --timeout 1200

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

bench: $(VENV)/.bench
	$(PY) -m benchmarks.compare.report

bench-full: $(VENV)/.bench
	$(PY) -m benchmarks.compare.report --full

scaling: $(VENV)/.built
	$(PY) -m benchmarks.scaling.scaling

clean:
	rm -rf $(VENV) build dist src/okforest/_core.pyi
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -exec rm -rf {} +
