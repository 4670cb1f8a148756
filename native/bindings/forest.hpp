// Forests as dictionaries of arrays, which Python keeps.
#pragma once

#include <nanobind/nanobind.h>

#include "bindings/arrays.hpp"
#include "core/forest.hpp"
#include "core/views.hpp"

namespace okforest {

// The arrays of trees, keyed by the names of ForestView's fields.
using NamedArrays = nb::typed<nb::dict, nb::str, nb::any>;

// Calls f(name, array) for each array that is grown.
template <class Arrays, class F>
void for_arrays(Arrays& forest, F&& f) {
  f("node_offsets", forest.node_offsets);
  f("member_offsets", forest.member_offsets);
  f("subset_offsets", forest.subset_offsets);
  f("feature", forest.feature);
  f("threshold", forest.threshold);
  f("missing_left", forest.missing_left);
  f("subset", forest.subset);
  f("subset_words", forest.subset_words);
  f("left", forest.left);
  f("weight", forest.weight);
  f("variance", forest.variance);
  f("begin", forest.begin);
  f("end", forest.end);
  f("members", forest.members);
  f("times", forest.times);
}

inline NamedArrays arrays_of(Forest&& forest) {
  NamedArrays result;
  for_arrays(forest, [&]<class T>(const char* name, AlignedArray<T>& values) {
    const nb::object array = to_numpy(std::move(values)).cast();
    result[name] = std::is_same_v<T, char> ? array.attr("view")("bool") : array;
  });
  return result;
}

// The view is valid as long as the dictionary holds the arrays.
inline ForestView forest_view(const NamedArrays& arrays) {
  ForestView forest{};
  const auto fill = [&]<class T>(const char* name, std::span<const T>& field) {
    field = view(nb::cast<Vector<T>>(arrays[name], false));
  };
  for_arrays(forest, fill);
  fill("row_weight", forest.row_weight);
  fill("n_categories", forest.n_categories);

  // With inconsistent lengths, the core would read out of bounds. The entries are trusted.
  const std::size_t n_nodes = forest.feature.size();
  bool sound = !forest.node_offsets.empty();
  for (const std::size_t size : {forest.threshold.size(), forest.missing_left.size(),
                                 forest.subset.size(), forest.left.size(), forest.weight.size(),
                                 forest.variance.size(), forest.begin.size(), forest.end.size()}) {
    sound = sound && size == n_nodes;
  }
  const auto ends_at = [&](std::span<const std::int64_t> offsets, std::size_t size) {
    return offsets.size() == forest.node_offsets.size() && are_offsets(offsets, size);
  };
  sound = sound && ends_at(forest.node_offsets, n_nodes) &&
          ends_at(forest.member_offsets, forest.members.size()) &&
          (forest.times.empty() || forest.times.size() == forest.members.size()) &&
          ends_at(forest.subset_offsets, forest.subset_words.size());
  if (!sound) throw std::invalid_argument("the arrays of the trees have inconsistent lengths");
  return forest;
}

}  // namespace okforest
