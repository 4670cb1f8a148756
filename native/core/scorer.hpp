// The contract between the growth of a tree and the form of its outputs.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <span>
#include <vector>

#include "core/gain.hpp"
#include "core/kernels.hpp"

namespace okforest {

struct Node {
  std::int32_t id;
  std::int32_t begin, end;  // range of its rows in the tree's
  std::int32_t depth;
  std::uint64_t seed;
  double weight = 0.0;
  double lightest = 0.0;  // weight of its rows
  double count = 0.0;
  double variance = 0.0;  // total: its weight times that of its outputs; zero if they are equal
  double scale = 0.0;     // sum of w_i ||phi_i||^2
  double noise = 0.0;     // gains that differ by less are equal

  // The largest total variance of equal vectors. They differ by less than kRounding times their
  // norms; rows too light to change the weight of the node do not count.
  double rounding() const {
    return (lightest < kEpsilon * weight ? kEpsilon : kRounding * kRounding) * scale;
  }
  // The rounding errors of its gains, if outputs are vectors.
  double vector_noise() const { return kRounding * std::sqrt(variance) * std::sqrt(scale); }
};

// Prefixes of a list of rows, which a sweep along a feature scores. Lists come in pairs without
// common rows, from both ends of a feature's values; one of the two may be empty.
struct Prefixes {
  Rows rows;
  Rows lengths;  // of the prefixes, ascending; the last is the whole list
};

// A scorer computes variances and gains of splits. What it knows about a node is in a frame, which
// the grower keeps and passes; it has no current node. The "norm" of a set of rows is the squared
// norm of the sum of w_i (phi_i - node mean) over it. All numbers are exact up to rounding errors
// of float64, except those of a search, whose errors are bounded by the Precision that it returns.
template <class S>
concept Scorer = requires(
    S scorer, Node& node, Rows rows, typename S::Frame& frame, const typename S::Frame& known,
    std::span<const double> weight, std::span<const Side> sides, std::span<const Prefixes> lists,
    bool exact, double* norms, std::int32_t* classes, std::span<double> sums, SmallGram& gram) {
  typename S::Frame;

  // Begins a tree, or a branch of it, on some training rows; weights are those of all training
  // rows, and must outlive it. They are empty if all are one.
  scorer.begin(weight, rows);

  // Fills the frame of a node, and sets its variance, scale and noise. With the frame of its
  // parent, which has been divided, and if nodes are entered depth first, this is faster.
  scorer.enter(node, rows, &known, frame);

  // Records that a node has been split into two sides, next to each other in memory. Its frame,
  // which may be null, then knows their sums.
  scorer.divide(&frame, rows, rows);

  // The norms of some sides, and of some prefixes: exact ones, or those of a search.
  { scorer.search_sides(node, rows, known, sides, norms) } -> std::same_as<Precision>;
  { scorer.prefix_norms(node, rows, known, lists, exact, norms) } -> std::same_as<Precision>;

  // For a node of at most kSmallNode rows, the inner products of its rows. Returns false where
  // scoring a few sets is less work.
  { scorer.small_gram(rows, known, gram) } -> std::same_as<bool>;

  // If there is a single output, w_i (y_i - mean) for each row, and true.
  { scorer.row_values(rows, known, norms) } -> std::same_as<bool>;

  // If outputs are classes, the class of each row, numbered within the node, the share of each of
  // these classes, and their number; otherwise zero.
  { scorer.row_classes(rows, known, classes, norms) } -> std::same_as<std::size_t>;

  // The norm of a set of rows of a given weight.
  { scorer.set_norm(known, rows, double{}) } -> std::same_as<double>;

  // The inner products <s_g, s_h> of groups of rows, where s_g is the sum of w_i (phi_i - node
  // mean) over group g, whose total weights are given; rows[k] is in group[k]. If vectors are of a
  // positive width, the sums themselves: s_g begins at sums[g * width]. Both are zero before.
  scorer.group_gram(known, rows, rows, weight, sums);
  { scorer.group_width(known) } -> std::same_as<std::size_t>;
  scorer.group_sums(known, rows, rows, weight, sums);
};

// What scorers share: their weights, and defaults without shortcuts, which search in float64.
template <class S>
class ScorerDefaults {
 public:
  void begin(std::span<const double> weight, Rows) { weight_ = weight; }
  bool small_gram(Rows, const auto&, SmallGram&) const { return false; }
  bool row_values(Rows, const auto&, double*) const { return false; }
  std::size_t row_classes(Rows, const auto&, std::int32_t*, double*) const { return 0; }
  std::size_t group_width(const auto&) const { return 0; }
  void group_sums(const auto&, Rows, Rows, std::span<const double>, std::span<double>) {}

  void group_gram(const auto& frame, Rows rows, Rows group, std::span<const double> group_weight,
                  std::span<double> products) {
    auto& scorer = *static_cast<S*>(this);
    const std::size_t n = group_weight.size(), width = scorer.group_width(frame);
    std::vector<double> sums(n * width, 0.0);
    scorer.group_sums(frame, rows, group, group_weight, sums);
    for (std::size_t g = 0; g < n; ++g) {
      for (std::size_t h = 0; h < n; ++h) {
        for (std::size_t j = 0; j < width; ++j) {
          products[g * n + h] += sums[g * width + j] * sums[h * width + j];
        }
      }
    }
  }

  Precision search_sides(const Node&, Rows, const auto& frame, std::span<const Side> sides,
                         double* norms) {
    for (const Side& side : sides) {
      *norms++ = static_cast<S*>(this)->set_norm(frame, side.rows, side.weight);
    }
    return {};
  }

 protected:
  // Subtracts the node's mean from the sums of groups.
  static void centre_groups(const std::vector<double>& mean, std::span<const double> group_weight,
                            std::span<double> sums) {
    for (std::size_t g = 0; g < group_weight.size(); ++g) {
      for (std::size_t j = 0; j < mean.size(); ++j) {
        sums[g * mean.size() + j] -= group_weight[g] * mean[j];
      }
    }
  }

  bool plain() const { return weight_.empty(); }  // whether all weights are one
  double weight_of(std::int32_t i) const { return plain() ? 1.0 : weight_[i]; }

  // The weights of some rows, or null if all are one; valid until the next call.
  const double* weights_of(Rows rows) {
    if (plain()) return nullptr;
    if (some_weights_.size() < rows.size()) some_weights_.resize(rows.size());
    for (std::size_t k = 0; k < rows.size(); ++k) some_weights_[k] = weight_[rows[k]];
    return some_weights_.data();
  }

  std::span<const double> weight_;  // of the training rows

 private:
  std::vector<double> some_weights_;
};

}  // namespace okforest
