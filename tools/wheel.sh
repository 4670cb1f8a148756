#!/bin/sh
# Builds the source distribution, and from it a wheel for each Python that none of the earlier wheels
# serves; repairs and audits the wheels. Installs the wheel of each Python in an empty virtual environment,
# and runs the ten lines of README.md and some tests outside of the repository. build/wheel/wheels.md has the
# sizes and the time of the import; the guide shows the copy of it in benchmarks/results.
#
#   wheel.sh VENV [PYTHON...]    for example: wheel.sh .venv python3.11 python3.12 python3.13
#
# Without PYTHON, that of VENV is used. The wheel of Python 3.12 has the stable ABI, and serves later ones.
set -eu
root=$(pwd)
bin=$root/$1/bin
out=$root/build/wheel
shift
[ $# -gt 0 ] || set -- "$bin/python"

# Usage: build_wheel PYTHON
build_wheel() {
  rm -rf "$out/built"
  "$bin/python" -m pip --python "$1" wheel --quiet --disable-pip-version-check --no-deps \
    --wheel-dir "$out/built" "$out"/dist/*.tar.gz
  if [ "$(uname)" = Linux ]; then
    PATH="$bin:$PATH" "$bin/auditwheel" repair --wheel-dir "$out/dist" "$out"/built/*.whl
  else
    cp "$out"/built/*.whl "$out/dist"
  fi
  for wheel in "$out"/dist/*abi3*.whl; do
    [ ! -e "$wheel" ] || "$bin/abi3audit" --strict --report "$wheel"
  done
}

# Usage: install PIP-OPTION...
install() {
  "$empty/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
}

rm -rf "$out"
"$bin/python" -m build --sdist --outdir "$out/dist" .
for python in "$@"; do
  empty=$out/empty-$("$python" -c 'import sys; print("{}.{}".format(*sys.version_info))')
  "$python" -m venv "$empty"
  ours="--no-deps --no-index --only-binary :all: --find-links $out/dist okforest"
  # shellcheck disable=SC2086
  if ! install $ours 2>/dev/null; then
    build_wheel "$python"
    install $ours
  fi
  install okforest hypothesis pandas pytest pytest-timeout skops # okforest is there: this adds its dependencies
  (
    cd "$empty"
    bin/python "$root/tools/check_wheel.py" "$out/dist" "$out/wheels.md"
    bin/python -m pytest -q -p no:cacheprovider "$root/tests/engine" "$root/tests/persistence"
  )
done
ls -l "$out/dist"
cat "$out/wheels.md"
