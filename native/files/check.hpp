// The check of trees that come from a file.
#pragma once

#include <cstdint>
#include <string>

#include "core/views.hpp"
#include "core/watch.hpp"

namespace okforest {

// What is wrong with the entries of the arrays of trees, whose lengths and offsets fit each other;
// empty if nothing is. Everything that the core trusts is checked: a walk ends in a leaf, and no
// index is out of bounds.
std::string problem_of(const ForestView& forest, std::int64_t n_features, Watch& watch);

}  // namespace okforest
