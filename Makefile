# Targets create .venv on first use, install only what they need in it, and rebuild the C++ core
# after a change in native/.
VENV   := .venv
PY     := $(VENV)/bin/python
NATIVE := $(shell find native -type f)
CUDA   := $(wildcard src/okforest/engine/cuda/*.cu* tests/cuda_host/*.cu*)

.PHONY: help demo demo-search test test-all test-oldest test-cuda test-page sanitize races cross lint
.PHONY: format figures docs reproduce bench bench-full conformal outputs scaling asv wheel clean

help:
	@echo "make demo        complete handwritten digits: a table and a figure (a few minutes with the setup)"
	@echo "make demo-search an image search engine in the browser, on generated pictures"
	@echo "make test        run the fast tests (a few minutes)"
	@echo "make test-all    run every test, with more random examples"
	@echo "make test-oldest run the tests of models and kernels with the lowest versions of packages"
	@echo "make test-cuda   build with CMake alone, and run the tests that need a GPU"
	@echo "make test-page   run the tests of the page of the image search, in headless Chromium"
	@echo "make sanitize    run the fast tests with the address and undefined-behaviour sanitizers"
	@echo "make races       grow trees with the thread sanitizer"
	@echo "make cross       compare the results of instruction sets, with aarch64 by emulation"
	@echo "make lint        check formatting, types, imports, spelling and workflows"
	@echo "make format      format the Python and C++ code"
	@echo "make docs        build the documentation site in build/docs, with the gallery"
	@echo "make figures     run the examples in docs/ and update their output, figures and tables"
	@echo "make reproduce   run the experiments of the papers (an hour); EXPERIMENT=friedman: one of them;"
	@echo "                 needs the data sets in the folder named by OKFOREST_DATA"
	@echo "make bench       time okforest against other libraries; writes benchmarks/RESULTS.md"
	@echo "make bench-full  the same with 100 trees and a large forest (slow)"
	@echo "make conformal   measure the coverage of prediction sets in several output spaces"
	@echo "make scaling     measure and plot how the cost grows with the size of the data"
	@echo "make outputs     compare label sets, hierarchies, rankings, strings and curves with peers (slow)"
	@echo "make asv         measure times and memory of this commit with asv"
	@echo "make wheel       build a wheel for this machine, and test it in an empty environment;"
	@echo "                 PYTHONS=\"python3.11 python3.12\": for several versions of Python"
	@echo "make clean       remove everything that make has created"

# okforest, compiled, with what it needs to run and to plot
$(VENV)/.built: pyproject.toml tools/setup.sh $(NATIVE)
	@sh tools/setup.sh $(VENV)
	@touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/.built
	@sh tools/setup.sh $(VENV) test
	@touch $@

$(VENV)/.lint: pyproject.toml | $(VENV)/.test
	@sh tools/setup.sh $(VENV) lint
	@touch $@

# A comparison whose library cannot be installed is skipped, and reports why.
$(VENV)/.bench: pyproject.toml | $(VENV)/.test
	@sh tools/setup.sh $(VENV) bench || echo "okforest: continuing without the missing libraries"
	@touch $@

demo: $(VENV)/.built
	@$(PY) examples/complete_digits.py

$(VENV)/.serve: pyproject.toml | $(VENV)/.built
	@echo "okforest: installing FastAPI, uvicorn, httpx and Pillow"
	@$(PY) -m pip install --quiet --disable-pip-version-check 'okforest[serve]'
	@touch $@

demo-search: $(VENV)/.serve
	@$(PY) examples/search_images.py

# One process per core, each with one thread.
PYTEST = OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(PY) -m pytest -n auto --dist worksteal
EVERY_TEST := -m "" --hypothesis-profile full

test: $(VENV)/.test
	$(PYTEST)

test-all: $(VENV)/.test
	$(PYTEST) $(EVERY_TEST)

# The lowest versions that pyproject.toml allows have no wheels for later versions of Python.
OLDEST       := build/oldest
OLDEST_TESTS := $(addprefix tests/,kernels decode metrics weights models persistence test_common.py)
$(OLDEST)/.test: pyproject.toml tools/setup.sh tools/oldest.py $(NATIVE)
	@mkdir -p $(OLDEST)
	python3.11 tools/oldest.py > $(OLDEST)/constraints.txt
	@export PYTHON=python3.11 PIP_CONSTRAINT=$(OLDEST)/constraints.txt \
		SKBUILD_BUILD_DIR=$(OLDEST)/native; \
		sh tools/setup.sh $(OLDEST)/venv && sh tools/setup.sh $(OLDEST)/venv test
	@touch $@

test-oldest: PY := $(OLDEST)/venv/bin/python
test-oldest: $(OLDEST)/.test
	$(PYTEST) $(OLDEST_TESTS)

# With the packages of the machine, since there may be no network: see tools/test_cuda.sh.
PYTHON := python3
test-cuda:
	@sh tools/test_cuda.sh $(PYTHON)

$(VENV)/.page: pyproject.toml | $(VENV)/.test
	@sh tools/setup.sh $(VENV) page
	@touch $@

# It needs Chromium: apt-get install chromium
test-page: $(VENV)/.page
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || \
		{ echo "okforest: Chromium is not installed; on Debian: apt-get install chromium"; exit 1; }
	$(PY) -m pytest tests/retrieval/test_page.py

# This build stops at an invalid memory access or undefined behaviour. It lives in its own virtual
# environment, which sees the packages of the main one through a .pth file. Experiments in worker
# processes are left out: with the sanitizer preloaded, joblib waits forever for those that fail.
SANITIZED := build/sanitize
sanitize: $(VENV)/.test
	$(PY) -m venv --without-pip $(SANITIZED)/venv
	$(PY) -c "import site; print(site.getsitepackages()[0])" > $(SANITIZED)/borrowed
	cp $(SANITIZED)/borrowed "$$($(SANITIZED)/venv/bin/python -c 'import site; print(site.getsitepackages()[0])')/borrowed.pth"
	$(PY) -m pip --python $(SANITIZED)/venv/bin/python install --quiet --no-deps \
		--no-build-isolation --force-reinstall --config-settings=build-dir=$(SANITIZED)/build \
		--config-settings=cmake.define.OKFOREST_SANITIZE=ON \
		--config-settings=cmake.define.CMAKE_COMPILE_WARNING_AS_ERROR=ON .
	LD_PRELOAD="$$($${CXX:-c++} -print-file-name=libasan.so) $$($${CXX:-c++} -print-file-name=libubsan.so)" \
		ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
		$(SANITIZED)/venv/bin/python -m pytest -n auto --timeout 1200 \
		--ignore tests/papers/test_jobs.py --ignore tests/papers/test_command.py

races:
	@sh tools/races.sh

cross:
	@sh tools/cross.sh

lint: $(VENV)/.lint
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(PY) -m nanobind.stubgen -q -m okforest._core -o src/okforest/_core.pyi
	$(PY) -m mypy
	$(VENV)/bin/lint-imports
	$(VENV)/bin/clang-format --dry-run --Werror $(filter %.cpp %.hpp,$(NATIVE)) $(CUDA)
	test "$$(uname)" != Linux || $(PY) tools/check_kernels.py
	$(VENV)/bin/codespell
	$(VENV)/bin/zizmor --offline --quiet .github

format: $(VENV)/.lint
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .
	$(VENV)/bin/clang-format -i $(filter %.cpp %.hpp,$(NATIVE)) $(CUDA)

figures: $(VENV)/.test
	$(PY) docs/make_figures.py
	$(PY) docs/make_tables.py

# The group of the tests has the packages that examples use: networkx, pandas, Dask and others.
$(VENV)/.docs: pyproject.toml | $(VENV)/.test
	@sh tools/setup.sh $(VENV) docs
	@touch $@

docs: $(VENV)/.docs
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(PY) -m sphinx -b html -d build/doctrees -W --keep-going \
		--quiet docs build/docs
	$(PY) docs/check_site.py build/docs

# The group of the tests has the packages of the command line.
EXPERIMENT := all
reproduce: $(VENV)/.test
	$(PY) -m papers $(EXPERIMENT)

bench: $(VENV)/.bench
	$(PY) -m benchmarks.compare.report

bench-full: $(VENV)/.bench
	$(PY) -m benchmarks.compare.report --full

conformal: $(VENV)/.bench
	$(PY) -m benchmarks.conformal | tee benchmarks/results/conformal.md
	$(PY) -m benchmarks.candidates | tee benchmarks/results/candidates.md
	$(PY) docs/make_tables.py

scaling: $(VENV)/.built
	$(PY) -m benchmarks.scaling.scaling

# Tables of the guides on output types; needs the data sets in the folder named by OKFOREST_DATA.
outputs: $(VENV)/.built
	{ $(PY) -m benchmarks.outputs.multilabel --repeats 5 emotions yeast; \
	  $(PY) -m benchmarks.outputs.multilabel bibtex; } | tee benchmarks/results/multilabel.md
	$(PY) -m benchmarks.outputs.hierarchies | tee benchmarks/results/hierarchies_grid.md
	$(PY) -m benchmarks.outputs.decoders | tee benchmarks/results/decoders.md
	$(PY) -m benchmarks.outputs.rankings | tee benchmarks/results/rankings.md
	$(PY) -m benchmarks.outputs.strings | tee benchmarks/results/strings.md
	$(PY) -m benchmarks.outputs.curves | tee benchmarks/results/curves.md
	$(PY) docs/make_tables.py

$(VENV)/.release: pyproject.toml | $(VENV)/.test
	@sh tools/setup.sh $(VENV) release
	@touch $@

# Results go to benchmarks/asv/results, which git ignores except for the baseline.
ASV := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(VENV)/bin/asv
asv: $(VENV)/.release
	$(ASV) machine --yes
	$(ASV) run --environment existing:$(abspath $(PY)) --set-commit-hash $$(git rev-parse HEAD)
	$(ASV) show HEAD

wheel: $(VENV)/.release
	@sh tools/wheel.sh $(VENV) $(PYTHONS)

clean:
	rm -rf $(VENV) build dist src/okforest/_core.pyi docs/gallery docs/api/generated
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -exec rm -rf {} +
