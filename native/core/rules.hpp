// How a tree is grown: the splits tried, the order of growth and the stopping rules.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
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
  variance,  // reduce the variance of the outputs within leaves
  frobenius  // reduce the error of the kernel predicted between leaves
};

struct Rules {
  SplitKind split_kind;
  Criterion criterion;
  GrowthOrder order;
  std::int32_t max_features;
  bool ignore_constant;  // whether features that are constant in a node do not count among these
  std::int32_t max_depth;
  std::int32_t max_leaf_nodes;
  double min_samples_split;  // in samples, as counted by `Sample::count`
  double min_samples_leaf;
  double min_impurity_decrease;  // of a split's gain, divided by the tree's total weight
  bool stop_when_pure;           // false: outputs are ignored, also by stopping rules
  std::span<const std::int32_t> n_categories;  // of each feature; 0: numeric
};

// The rows that a tree is grown on. `weight` and `count` are per training row: its weight in
// scores, and the number of samples it counts as in stopping rules.
struct Sample {
  std::span<const std::int32_t> rows;
  std::span<const double> weight;
  std::span<const double> count;
  bool plain;                      // whether every weight and count is one
  std::span<const double> errors;  // squared distances between equal outputs, by rounding; or empty

  double weight_of(std::span<const std::int32_t> some) const { return total(some, weight); }
  double count_of(std::span<const std::int32_t> some) const { return total(some, count); }

  // Whether weights are counts, as those of drawn rows.
  bool weights_count() const { return weight.data() == count.data(); }

  // The total variance that equal outputs in some rows may have.
  double error_of(std::span<const std::int32_t> some) const {
    double sum = 0.0;
    for (std::size_t k = 0; k < some.size() && !errors.empty(); ++k) {
      sum += weight[some[k]] * errors[some[k]];
    }
    return sum;
  }

  // The least weight of some rows.
  double lightest_of(std::span<const std::int32_t> some) const {
    if (plain) return 1.0;
    double least = std::numeric_limits<double>::infinity();
    for (const auto row : some) least = std::min(least, weight[row]);
    return least;
  }

 private:
  double total(std::span<const std::int32_t> some, std::span<const double> of) const {
    if (plain) return static_cast<double>(some.size());
    double sum = 0.0;
    for (const auto row : some) sum += of[row];
    return sum;
  }
};

// Whether a number of samples is below a limit, by more than rounding errors of a sum of weights.
inline double at_least(double limit) { return limit * (1.0 - 1e-9); }
inline bool fewer(double count, double limit) { return count < at_least(limit); }

}  // namespace okforest
