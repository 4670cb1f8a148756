// The core's view of a fitted forest, which Python passes as a dictionary of arrays.
#pragma once

#include <nanobind/nanobind.h>

#include "bindings/arrays.hpp"
#include "core/views.hpp"

namespace okforest {

// The view is valid as long as the dictionary holds the arrays.
inline ForestView forest_view(const NamedArrays& arrays) {
  ForestView forest{};
  const auto fill = [&]<class T>(std::span<const T>& field, const char* name) {
    field = view(nb::cast<Vector<T>>(arrays[name], false));
  };
  fill(forest.node_offsets, "node_offsets");
  fill(forest.member_offsets, "member_offsets");
  fill(forest.subset_offsets, "subset_offsets");
  fill(forest.feature, "feature");
  fill(forest.threshold, "threshold");
  fill(forest.missing_left, "missing_left");
  fill(forest.subset, "subset");
  fill(forest.subset_words, "subset_words");
  fill(forest.left, "left");
  fill(forest.weight, "weight");
  fill(forest.variance, "variance");
  fill(forest.begin, "begin");
  fill(forest.end, "end");
  fill(forest.members, "members");
  fill(forest.times, "times");
  fill(forest.row_weight, "row_weight");
  fill(forest.n_categories, "n_categories");

  // With inconsistent lengths, the core would read out of bounds. The entries are trusted.
  const std::size_t n_nodes = forest.feature.size();
  bool sound = !forest.node_offsets.empty();
  for (const std::size_t size : {forest.threshold.size(), forest.missing_left.size(),
                                 forest.subset.size(), forest.left.size(), forest.weight.size(),
                                 forest.variance.size(), forest.begin.size(), forest.end.size()}) {
    sound = sound && size == n_nodes;
  }
  const auto ends_at = [&](std::span<const std::int64_t> offsets, std::size_t size) {
    return offsets.size() == forest.node_offsets.size() && offsets.front() == 0 &&
           offsets.back() == static_cast<std::int64_t>(size);
  };
  sound = sound && ends_at(forest.node_offsets, n_nodes) &&
          ends_at(forest.member_offsets, forest.members.size()) &&
          (forest.times.empty() || forest.times.size() == forest.members.size()) &&
          ends_at(forest.subset_offsets, forest.subset_words.size());
  if (!sound) throw std::invalid_argument("the arrays of the trees have inconsistent lengths");
  return forest;
}

}  // namespace okforest
