#!/bin/sh
# Builds okforest with CMake alone, without a network, and runs the tests that need a GPU. The machine
# needs a GPU, nanobind, CMake, ninja, a C++ compiler, CuPy, scikit-learn, narwhals, pytest and
# hypothesis.
set -e
python=${1:-python3}
build=build/cuda
package=$build/package
cmake -S native -B $build/native -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DPython_EXECUTABLE="$(command -v "$python")"
cmake --build $build/native --target _core _strings
mkdir -p $package/okforest-0.dist-info
rm -rf $package/okforest
cp -r src/okforest $package/
rm -f $package/okforest/*.so
cp $build/native/_core*.so $build/native/_strings*.so $package/okforest/
version=$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
printf 'Metadata-Version: 2.1\nName: okforest\nVersion: %s\n' "$version" \
  > $package/okforest-0.dist-info/METADATA
PYTHONPATH="$package${PYTHONPATH:+:$PYTHONPATH}" "$python" -m pytest -p no:cacheprovider -m cuda \
  tests/engine/test_cuda*.py \
  tests/decode/test_search_on_device.py tests/models/test_cupy_arrays.py \
  tests/embedding/test_on_device.py
