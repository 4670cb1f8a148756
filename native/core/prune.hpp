// Minimal cost-complexity pruning: the cost of a tree is the total variance of its leaves.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/views.hpp"

namespace okforest {

// The nested trees of one tree, from all of it to its root alone: the price of a leaf from which
// each is the best, and its cost as a part of the root's weight.
struct PruningPath {
  std::vector<double> alphas;
  std::vector<double> costs;
};
PruningPath pruning_path(const ForestView& tree);

// Which nodes become leaves when leaves cost alpha each: 1, and the nodes below them: 2; others: 0.
std::vector<std::int8_t> prune(const ForestView& tree, double alpha);

}  // namespace okforest
