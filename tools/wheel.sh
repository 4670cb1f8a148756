#!/bin/sh
# Builds the source distribution, and from it a wheel for this machine; repairs and audits the wheel,
# installs it in an empty virtual environment, and runs the ten lines of README.md and some tests
# outside of the repository.
#
#   wheel.sh VENV
set -eu
root=$(pwd)
bin=$root/$1/bin
out=$root/build/wheel

rm -rf "$out"
"$bin/python" -m build --outdir "$out/built" .
if [ "$(uname)" = Linux ]; then
  PATH="$bin:$PATH" "$bin/auditwheel" repair --wheel-dir "$out/dist" "$out"/built/*.whl
else
  mkdir -p "$out/dist" && cp "$out"/built/*.whl "$out/dist"
fi
cp "$out"/built/*.tar.gz "$out/dist"
case $(ls "$out/dist") in
  *abi3*) "$bin/abi3audit" --strict --report "$out"/dist/*.whl ;;
esac

"$bin/python" -m venv "$out/empty"
"$out/empty/bin/python" -m pip install --quiet --disable-pip-version-check "$out"/dist/*.whl \
  hypothesis pandas pytest pytest-timeout skops
cd "$out/empty"
bin/python "$root/tools/check_wheel.py"
bin/python -m pytest -q -p no:cacheprovider "$root/tests/engine" "$root/tests/persistence"
ls -l "$out/dist"
