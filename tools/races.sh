#!/bin/sh
# Compiles the growth of trees with the thread sanitizer, and runs it.
set -eu
cd "$(dirname "$0")/../native"
out=../build/races
options="-std=c++20 -O1 -g -ffp-contract=off -fsanitize=thread -Wall -Wextra -Werror -Wno-psabi -I."
mkdir -p "$out"
sources=
for name in bins bootstrap dispatch factor forest gram gram_block gram_search grow histograms; do
  sources="$sources core/$name.cpp"
done
${CXX:-g++} $options -DOKFOREST_LEVEL=baseline -DOKFOREST_LEVEL_NAME='"baseline"' \
  -DOKFOREST_INPUTS="DenseInputs<float>" core/kernels.cpp $sources tests/shared_trees.cpp \
  -pthread -o "$out/shared_trees"
TSAN_OPTIONS="exitcode=1" "$out/shared_trees"
echo "no data race"
