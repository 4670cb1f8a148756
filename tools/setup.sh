#!/bin/sh
# Sets up the virtual environment of the Makefile.
#
#   setup.sh VENV          create VENV, compile okforest and install what it needs to run and to plot
#   setup.sh VENV GROUP    install a dependency group of pyproject.toml (test, lint, docs, bench) in VENV
#
# PYTHON and CXX choose the interpreter and the compiler.
set -eu
venv=$1
group=${2:-}

say() { printf 'okforest: %s\n' "$*"; }

fail() {
  printf '\nokforest: %s\n' "$*" >&2
  exit 1
}

install() {
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@" ||
    fail "pip failed; its message is above. If it could not download a package, check the" \
      "network connection, or set PIP_INDEX_URL to a package index that you can reach." \
      "Then run make again"
}

if [ -n "$group" ]; then
  say "installing the packages of the '$group' group in $venv"
  install --group "$group"
  exit
fi

python=
for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python}; do
  if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
    python=$candidate
    break
  fi
done
[ -n "$python" ] || fail "no Python 3.11 or newer was found. Install one" \
  "(Debian, Ubuntu: apt install python3 python3-venv python3-dev; macOS: brew install python)" \
  "or give its path: make PYTHON=/path/to/python3.11"

compiler=
for candidate in ${CXX:-c++ g++ clang++}; do
  if echo '#include <span>' | "$candidate" -std=c++20 -fsyntax-only -x c++ - >/dev/null 2>&1; then
    compiler=$candidate
    break
  fi
done
[ -n "$compiler" ] || fail "no C++20 compiler was found. Install one" \
  "(Debian, Ubuntu: apt install g++; macOS: xcode-select --install)" \
  "or give its name: make CXX=g++-12"
export CXX="$compiler" # so that CMake uses it, too

if [ ! -x "$venv/bin/pip" ]; then
  say "creating $venv with $($python --version)"
  "$python" -m venv "$venv" || fail "$python cannot create a virtual environment. Install its" \
    "venv module (Debian, Ubuntu: apt install python3-venv)"
fi
say "installing the build tools: CMake, Ninja, nanobind, scikit-build-core"
install --upgrade 'pip>=25.1' # the first to know dependency groups
install --group build
say "compiling the C++ core (two to five minutes)"
install --no-build-isolation --no-deps --editable .
say "installing NumPy, SciPy, scikit-learn and Matplotlib"
install 'okforest[plot]' # okforest is installed by now: this adds its dependencies
