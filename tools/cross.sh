#!/bin/sh
# Compiles the core for aarch64, runs the kernels there by emulation, and compares their results with
# those of this machine. Needs g++-aarch64-linux-gnu and qemu-user (Debian's names).
set -eu
cd "$(dirname "$0")/../native"
out=../build/cross
options="-std=c++20 -O3 -ffp-contract=off -Wall -Wextra -Werror -Wno-psabi -I."
mkdir -p "$out"

# Usage: kernels COMPILER LEVEL OBJECT OPTIONS...
kernels() {
  compiler=$1 level=$2 object=$3
  shift 3
  $compiler $options "$@" -DOKFOREST_LEVEL="$level" -DOKFOREST_LEVEL_NAME="\"$level\"" \
    -c core/kernels.cpp -o "$object"
}

here=${CXX:-g++}
kernels "$here" baseline "$out/baseline.o"
here_objects="$out/baseline.o"
here_options=
if [ "$(uname -m)" = x86_64 ]; then
  kernels "$here" avx2 "$out/avx2.o" -mavx2 -mbmi -mbmi2 -mpopcnt
  kernels "$here" avx512 "$out/avx512.o" -march=x86-64-v4 -mprefer-vector-width=512
  here_objects="$here_objects $out/avx2.o $out/avx512.o"
  here_options=-DOKFOREST_X86
fi
$here $options $here_options core/dispatch.cpp tests/kernel_checksums.cpp $here_objects \
  -o "$out/here"

there=aarch64-linux-gnu-g++
for source in core/*.cpp decode/*.cpp images/*.cpp sequences/*.cpp; do
  [ "$source" = core/kernels.cpp ] ||
    $there $options -DOKFOREST_INPUTS="DenseInputs<float>" -fsyntax-only "$source"
done
kernels "$there" baseline "$out/aarch64.o"
$there $options -static core/dispatch.cpp tests/kernel_checksums.cpp "$out/aarch64.o" \
  -o "$out/aarch64"

"$out/here" >"$out/here.txt"
qemu-aarch64 "$out/aarch64" >"$out/aarch64.txt"
if [ "$(sort -u "$out/here.txt" "$out/aarch64.txt" | wc -l)" != 1 ]; then
  echo "kernels differ between instruction sets:" && cat "$out/here.txt" "$out/aarch64.txt"
  exit 1
fi
echo "$(cat "$out/here.txt" "$out/aarch64.txt" | wc -l) instruction sets give the same results"
