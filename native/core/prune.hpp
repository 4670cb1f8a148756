// Minimal cost-complexity pruning: the cost of a tree is the total variance of its leaves.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/views.hpp"
#include "core/watch.hpp"

namespace okforest {

// The nested prunings of a tree, from the whole tree to its root alone. Pruning k is optimal for
// alphas from alphas[k] to alphas[k + 1]; costs[k] is its cost divided by the root's weight.
struct PruningPath {
  std::vector<double> alphas;
  std::vector<double> costs;
};
PruningPath pruning_path(const ForestView& tree, Watch& watch);

// The fate of each node if a leaf costs alpha: 1 if it becomes a leaf, 2 if it is removed,
// otherwise 0.
std::vector<std::int8_t> prune(const ForestView& tree, double alpha, Watch& watch);

}  // namespace okforest
