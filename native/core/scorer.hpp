// The contract between the growth of a tree and the form of its outputs.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>

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
  double variance = 0.0;  // total: its weight times the variance of its outputs
  double scale = 0.0;     // sum of w_i ||phi_i||^2
  double noise = 0.0;     // gains that differ by less are equal
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
    double* norms, std::int32_t* classes, std::span<double> sums, SmallGram& gram) {
  typename S::Frame;

  // Begins a tree, or a branch of it, on some training rows; weights are those of all training
  // rows, and must outlive it. They are empty if all are one.
  scorer.begin(weight, rows);

  // Fills the frame of a node, and sets its variance, scale and noise. With the frame of its
  // parent, which has been divided, and if nodes are entered depth first, this is faster.
  scorer.enter(node, rows, &known, frame);

  // Records that a node has been split into two sides, of which its frame then knows the sums. The
  // frame may be null.
  scorer.divide(&frame, rows, rows);

  // Search: the norms of some sides, and of some prefixes.
  { scorer.search_sides(node, rows, known, sides, norms) } -> std::same_as<Precision>;
  { scorer.search_prefixes(node, rows, known, lists, norms) } -> std::same_as<Precision>;

  // For a node of at most kSmallNode rows, the inner products of its rows. Returns false where
  // scoring a few sets is less work.
  { scorer.small_gram(rows, known, gram) } -> std::same_as<bool>;

  // If there is a single output, w_i (y_i - mean) for each row, and true.
  { scorer.row_values(rows, known, norms) } -> std::same_as<bool>;

  // If outputs are classes, the class of each row, numbered within the node, the share of each of
  // these classes, and their number; otherwise zero.
  { scorer.row_classes(rows, known, classes, norms) } -> std::same_as<std::size_t>;

  // The norm of a set of rows of a given weight, and the norms of some prefixes.
  { scorer.set_norm(node, known, rows, double{}) } -> std::same_as<double>;
  scorer.prefix_norms(node, rows, known, lists, norms);

  // sums[g * n + h] = <s_g, s_h>, where s_g is the sum of w_i (phi_i - node mean) over group g of
  // n, whose total weights are given; rows[k] is in group[k].
  scorer.group_gram(known, rows, rows, weight, sums);
};

// The defaults of a scorer: no shortcuts, and searches in float64.
template <class S>
class ScorerDefaults {
 public:
  bool small_gram(Rows, const auto&, SmallGram&) const { return false; }
  bool row_values(Rows, const auto&, double*) const { return false; }
  std::size_t row_classes(Rows, const auto&, std::int32_t*, double*) const { return 0; }

  Precision search_sides(const Node& node, Rows, const auto& frame, std::span<const Side> sides,
                         double* norms) {
    for (const Side& side : sides) {
      *norms++ = static_cast<S*>(this)->set_norm(node, frame, side.rows, side.weight);
    }
    return {};
  }
  Precision search_prefixes(const Node& node, Rows rows, const auto& frame,
                            std::span<const Prefixes> lists, double* norms) {
    static_cast<S*>(this)->prefix_norms(node, rows, frame, lists, norms);
    return {};
  }
};

}  // namespace okforest
