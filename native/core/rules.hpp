// How a tree is grown: the splits tried, the order of growth and the stopping rules.
#pragma once

#include <cstdint>
#include <span>

namespace okforest {

enum class SplitKind {
  best,   // every threshold of a feature
  random  // one threshold of a feature, uniform over its range in the node
};

enum class GrowthOrder {
  depth,     // depth first
  variance,  // largest total variance first
  gain       // largest reduction of the total variance first
};

enum class Criterion {
  variance,  // the outputs of each leaf near their mean
  frobenius  // the kernel between leaves near that of the outputs
};

struct Rules {
  SplitKind split_kind;
  Criterion criterion;
  GrowthOrder order;
  std::int32_t max_features;
  std::int32_t max_depth;
  std::int32_t max_leaf_nodes;
  double min_samples_split;  // in samples as counted by `Sample::count`
  double min_samples_leaf;
  double min_impurity_decrease;  // of a split's reduction over the tree's total weight
  bool stop_when_pure;           // false: the outputs play no part, not even in stopping
  std::span<const std::int32_t> n_categories;  // of each feature; 0: numeric
};

// The rows a tree is grown on. `weight` and `count` are per training row: what it weighs in scores
// and how many samples it stands for in the stopping rules.
struct Sample {
  std::span<const std::int32_t> rows;
  std::span<const double> weight;
  std::span<const double> count;
  bool plain;  // whether every weight and count is one

  double weight_of(std::span<const std::int32_t> some) const { return total(some, weight); }
  double count_of(std::span<const std::int32_t> some) const { return total(some, count); }

 private:
  double total(std::span<const std::int32_t> some, std::span<const double> of) const {
    if (plain) return static_cast<double>(some.size());
    double sum = 0.0;
    for (const auto row : some) sum += of[row];
    return sum;
  }
};

// Whether a number of samples is below a limit, by more than the rounding of sums of weights.
inline double at_least(double limit) { return limit * (1.0 - 1e-9); }
inline bool fewer(double count, double limit) { return count < at_least(limit); }

}  // namespace okforest
