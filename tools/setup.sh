#!/bin/sh
# Makes the virtual environment $1 with what is needed to build and test okforest, and with the
# dependency groups that follow, or says what is missing. PYTHON and CXX choose the interpreter and
# the compiler.
set -eu
venv=$1
shift
groups="--group build --group test"
for group in "$@"; do groups="$groups --group $group"; done

fail() {
  printf '\nokforest: %s\n' "$*" >&2
  exit 1
}

python=
for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python}; do
  if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
    python=$candidate
    break
  fi
done
[ -n "$python" ] || fail "no Python 3.11 or newer was found. Install one" \
  "(Debian, Ubuntu: apt install python3 python3-venv python3-dev; macOS: brew install python)" \
  "or name it: make PYTHON=/path/to/python3.11"

compiler=
for candidate in ${CXX:-c++ g++ clang++}; do
  if echo '#include <span>' | "$candidate" -std=c++20 -fsyntax-only -x c++ - >/dev/null 2>&1; then
    compiler=$candidate
    break
  fi
done
[ -n "$compiler" ] || fail "no C++20 compiler was found. Install one" \
  "(Debian, Ubuntu: apt install g++; macOS: xcode-select --install) or name it: make CXX=g++-12"

if [ ! -x "$venv/bin/pip" ]; then
  echo "okforest: making $venv with $($python --version)"
  "$python" -m venv "$venv" || fail "$python cannot make a virtual environment. Install its venv" \
    "module (Debian, Ubuntu: apt install python3-venv)"
fi
echo "okforest: installing what is needed (a minute or two on first use)"
pip="$venv/bin/python -m pip install --quiet --disable-pip-version-check"
{ $pip --upgrade 'pip>=25.1' && $pip $groups 'numpy>=2.0' 'scipy>=1.13' 'scikit-learn>=1.7'; } || fail "pip could not install the packages above. Check the network" \
  "connection, or point pip at a reachable package index (PIP_INDEX_URL), and run make again"
