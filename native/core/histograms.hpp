// Rounds of boosting on binned features. For each feature, a histogram has the sums of the outputs
// in every bin of a node; the histogram of the larger child of a node is that of the node minus
// that of the smaller one.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "core/aligned_array.hpp"
#include "core/bins.hpp"
#include "core/feature_order.hpp"
#include "core/forest.hpp"
#include "core/rowset.hpp"
#include "core/rules.hpp"
#include "core/scorer.hpp"
#include "core/views.hpp"
#include "core/watch.hpp"

namespace okforest {

// A tree that was grown on the rows of positive weight.
struct BinnedTree {
  Tree tree;
  std::vector<std::int32_t> places;  // the leaf of each row, in the order of their members
  std::vector<double> means;         // (n_leaves, q): what was subtracted from the rows of a leaf
};

// Trees are those of core/grow.hpp for the codes of the bins in place of the values, with the
// thresholds of Bins::cut_between: the same splits are compared, ties are broken in the same way.
class BinnedRounds {
 public:
  // Weights may be zero where those of the bins are positive, but not the other way round.
  BinnedRounds(Bins bins, int n_threads) : bins_(std::move(bins)), n_threads_(n_threads) {}

  const Bins& bins() const { return bins_; }

  // Grows a tree, and subtracts from each row of the values the mean of its leaf times the scale.
  // Throws Stopped if the watch stops it, and leaves the values unchanged or partly modified.
  BinnedTree grow(const MutableMatrix& values, std::span<const double> row_weight,
                  std::span<const double> row_errors, const Rules& rules, std::uint64_t seed,
                  double scale, Watch& watch);

 private:
  // A split, whose sides have the bins up to `lower`, and from `upper` on.
  struct Choice {
    std::int32_t feature = -1, lower = 0, upper = 0;
    bool missing_left = false;
    double gain = kNoGain;
  };

  struct NodeState : Node {
    NodeState() : Node{} {}

    NodeState *parent = nullptr, *left = nullptr, *right = nullptr;
    std::vector<double> sum;  // the sum of w_i phi_i
    double source = 0.0;      // largest scale of the nodes whose sums its histogram is made of
    AlignedArray<double> histogram{};
    Choice choice{};
    std::int32_t last = 0;  // code that goes left
    std::int32_t leaf = 0;  // number of a leaf
    double priority = 0.0;
  };

  void begin(const MutableMatrix& values, std::span<const double> row_weight, Pace& pace);
  NodeState& add_node(std::int32_t begin, std::int32_t end, NodeState* parent, std::uint64_t seed);
  void measure(NodeState& node) const;
  bool may_split(const NodeState& node) const;
  void push(NodeState& node);
  NodeState& pop();
  static bool later(const NodeState* a, const NodeState* b);
  bool choose(NodeState& node);
  void screen(const NodeState& node, std::span<const std::int32_t> features);
  void decide(NodeState& node, std::span<const std::int32_t> features, Rng* rng);
  void split(NodeState& node, bool is_last);
  std::int32_t partition(const NodeState& node, const Bins::Cut& cut);
  void make_histogram(NodeState& node);
  void divide_histogram(NodeState& parent);
  void fill(NodeState& node);
  void take_buffer(NodeState& node);
  void give_back(NodeState& node);
  template <class F>
  void visit(const NodeState& node, std::int32_t feature, F&& f) const;
  double best(const NodeState& node, std::int32_t feature) const;
  void take(NodeState& node, std::int32_t feature, double least) const;
  std::int32_t reach(std::int64_t row) const;
  std::int32_t reach_unused(std::size_t k) const;
  void finish(const MutableMatrix& values, double scale, BinnedTree& result, Pace& pace);

  const double* entry(std::int64_t k) const { return entries_.data() + k * n_values_; }
  double weight_of(const double* entry) const { return plain_ ? 1.0 : entry[rank_]; }
  std::span<const std::int32_t> rows_of(const NodeState& node) const {
    return std::span(rows_).subspan(node.begin, node.end - node.begin);
  }
  // The sums of a bin of a histogram.
  double* bin(AlignedArray<double>& histogram, std::int32_t feature, std::int32_t code) const {
    return histogram.data() + (std::int64_t{feature} * (kMostBins + 1) + code) * width_;
  }
  const double* bin(const AlignedArray<double>& histogram, std::int32_t feature,
                    std::int32_t code) const {
    return histogram.data() + (std::int64_t{feature} * (kMostBins + 1) + code) * width_;
  }

  Bins bins_;
  int n_threads_;

  // Of the tree that is grown:
  Watch* watch_ = nullptr;
  const Rules* rules_ = nullptr;
  std::span<const double> errors_;
  Rowset rowset_;
  std::vector<double> row_weight_;  // that the rowset was made from
  std::int64_t rank_ = 0;           // of the outputs
  std::int64_t width_ = 0;     // of sums: w phi, w, and the count unless it is w; the count is last
  bool plain_ = false;         // whether all weights are one
  std::int64_t n_values_ = 0;  // of a row: w phi, and unless all are one, its weight and count
  double largest_error_ = 0.0;
  Tree tree_;
  std::vector<std::int32_t> rows_, right_rows_;
  AlignedArray<double> entries_, right_entries_;  // of the rows, in their order
  std::deque<NodeState> nodes_;
  std::vector<NodeState*> frontier_;  // a heap
  std::vector<double> gains_;         // of features
  FeatureOrder order_{0};
  std::vector<AlignedArray<double>> buffers_;  // histograms that are not in use
  std::size_t n_in_use_ = 0;
};

}  // namespace okforest
