// Growing a forest: the entry point of the core.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "core/forest.hpp"
#include "core/rules.hpp"
#include "core/views.hpp"

namespace okforest {

enum class OutputForm { factor, gram };

struct ForestPlan {
  std::uint64_t seed;       // tree t is grown from derive(seed, t)
  std::int64_t first_tree;  // number of the first tree to grow
  std::int64_t n_trees;
  std::int32_t n_draws;  // rows drawn with replacement for each tree; 0: every row, once
  int n_threads;
};

// Grows trees on inputs X and outputs in either form, for training rows of the given weights (a row
// of weight zero takes no part). The Frobenius rule needs a Gram matrix, not centred. Calls
// watch(n_done) now and then from the calling thread; false stops the growth. Returns the forest,
// of no tree if it was stopped.
template <class Inputs>
Forest grow_forest(const Inputs& X, const MatrixView& outputs, OutputForm form,
                   std::span<const double> row_weight, const Rules& rules, const ForestPlan& plan,
                   const std::function<bool(std::int64_t)>& watch);

}  // namespace okforest
