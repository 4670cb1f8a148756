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
  std::int32_t n_draws;  // rows drawn with replacement for each tree; 0: all rows, no bootstrap
  int n_threads;
};

// Grows trees on inputs X and outputs in either form. Training rows of weight zero are ignored. The
// Frobenius rule needs a Gram matrix that is not centred. Calls report(number of trees done)
// regularly from the calling thread; if it returns false, growing stops and the forest is empty.
template <class Inputs>
Forest grow_forest(const Inputs& X, const MatrixView& outputs, OutputForm form,
                   const KnownRows& known, std::span<const double> row_weight, const Rules& rules,
                   const ForestPlan& plan, const std::function<bool(std::int64_t)>& report);

}  // namespace okforest
