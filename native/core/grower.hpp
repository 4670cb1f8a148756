// Growing one tree: the order of its nodes, and the stopping rules.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/forest.hpp"
#include "core/splitter.hpp"

namespace okforest {

// A node is pure if its total variance is below this fraction of its scorer's scale.
inline constexpr double kPure = 1e-14;

template <class Inputs, class Scorer>
class Grower {
 public:
  Grower(const Inputs& X, Scorer& scorer, const Rules& rules,
         const Ranks<typename Inputs::Element>* ranks, const std::atomic<bool>& stopped)
      : X_(X),
        scorer_(scorer),
        rules_(rules),
        stopped_(stopped),
        splitter_(X, scorer, rules, ranks, stopped) {}

  // Grows a tree. The reference is valid until the next call.
  Tree& grow(const Sample& sample, std::uint64_t seed) {
    begin(sample);
    push(make_node(0, static_cast<std::int32_t>(rows_.size()), 0, seed));
    for (std::int32_t n_leaves = 1; !frontier_.empty() && n_leaves < rules_.max_leaf_nodes;) {
      if (stopped_) break;
      Candidate candidate = pop();
      // If gains order the frontier, the split is known. Otherwise it is searched only now, since a
      // node that is never popped needs none.
      if (rules_.order != GrowthOrder::gain && !(open(candidate) && find_split(candidate)))
        continue;
      split(candidate);
      ++n_leaves;
    }
    // Nodes that were never opened are leaves, and need their variance.
    for (Candidate& candidate : frontier_) {
      if (!stopped_) open(candidate);
    }
    tree_.members = rows_;
    return tree_;
  }

 private:
  struct Candidate {
    Node node;
    Split split;
    double priority = 0.0;
  };

  void begin(const Sample& sample) {
    sample_ = sample;
    scorer_.begin(sample.weight);
    splitter_.begin(sample);
    rows_.assign(sample.rows.begin(), sample.rows.end());
    right_rows_.resize(rows_.size() + 1);
    values_.resize(rows_.size());
    frontier_.clear();
    tree_.nodes.clear();
    tree_.times.clear();
    tree_.subset_words.clear();
  }

  Candidate make_node(std::int32_t begin, std::int32_t end, std::int32_t depth,
                      std::uint64_t seed) {
    Node node{static_cast<std::int32_t>(tree_.nodes.size()), begin, end, depth, seed};
    node.weight = sample_.weight_of(rows_of(node));
    node.count = sample_.count_of(rows_of(node));
    tree_.nodes.push_back({.begin = begin, .end = end, .weight = node.weight});
    return {node, {}, 0.0};
  }

  std::span<const std::int32_t> rows_of(const Node& node) const {
    return std::span(rows_).subspan(node.begin, node.end - node.begin);
  }

  // Enters the node in the scorer and returns whether it may be split.
  bool open(Candidate& candidate) {
    Node& node = candidate.node;
    node.variance = scorer_.enter(rows_of(node), node.weight);
    tree_.nodes[node.id].variance = node.variance;
    if (node.depth >= rules_.max_depth) return false;
    if (fewer(node.count, rules_.min_samples_split) ||
        fewer(node.count, 2 * rules_.min_samples_leaf)) {
      return false;
    }
    return !rules_.stop_when_pure || node.variance > kPure * scorer_.scale();
  }

  bool find_split(Candidate& candidate) {
    splitter_.search(candidate.node, rows_of(candidate.node), candidate.split);
    const double gain = candidate.split.gain * (1.0 + kTie) + kNoise * candidate.node.variance;
    return candidate.split.found() && gain >= rules_.min_impurity_decrease * tree_.nodes[0].weight;
  }

  void push(Candidate candidate) {
    if (candidate.node.end - candidate.node.begin < 2) return;  // a leaf of variance zero
    if (rules_.order != GrowthOrder::depth) {
      if (!open(candidate)) return;
      if (rules_.order == GrowthOrder::gain && !find_split(candidate)) return;
      candidate.priority = coarse(rules_.order == GrowthOrder::gain ? candidate.split.gain
                                                                    : candidate.node.variance);
    }
    frontier_.push_back(std::move(candidate));
    if (rules_.order != GrowthOrder::depth)
      std::push_heap(frontier_.begin(), frontier_.end(), later);
  }

  Candidate pop() {
    if (rules_.order != GrowthOrder::depth)
      std::pop_heap(frontier_.begin(), frontier_.end(), later);
    Candidate candidate = std::move(frontier_.back());
    frontier_.pop_back();
    return candidate;
  }

  static bool later(const Candidate& a, const Candidate& b) {
    return a.priority != b.priority ? a.priority < b.priority : a.node.id > b.node.id;
  }

  // Rounds to about nine digits, so that priorities that differ by rounding errors tie.
  static double coarse(double value) {
    int exponent;
    const double mantissa = std::frexp(value, &exponent);
    return std::ldexp(std::nearbyint(mantissa * 0x1p30), exponent - 30);
  }

  void split(const Candidate& candidate) {
    const Node& node = candidate.node;
    const std::int32_t middle = partition(node, candidate.split);
    TreeNode& grown = tree_.nodes[node.id];
    grown.feature = candidate.split.feature;
    grown.threshold = candidate.split.threshold;
    grown.missing_left = candidate.split.missing_left;
    if (const auto& words = candidate.split.subset; !words.empty()) {
      grown.subset = static_cast<std::int32_t>(tree_.subset_words.size());
      tree_.subset_words.insert(tree_.subset_words.end(), words.begin(), words.end());
    }
    grown.left = static_cast<std::int32_t>(tree_.nodes.size());
    Candidate left = make_node(node.begin, middle, node.depth + 1, derive(node.seed, 1));
    Candidate right = make_node(middle, node.end, node.depth + 1, derive(node.seed, 2));
    if constexpr (requires { scorer_.split(rows_of(node), rows_of(node)); }) {
      scorer_.split(rows_of(left.node), rows_of(right.node));
    }
    push(std::move(right));
    push(std::move(left));
  }

  // Moves the rows that go left before those that go right, keeping the order within each side.
  std::int32_t partition(const Node& node, const Split& split) {
    Test test{split.threshold, nullptr, 0, split.missing_left};
    if (!split.subset.empty()) {
      test.words = split.subset.data();
      test.n_categories = rules_.n_categories[split.feature];
    }
    X_.gather(split.feature, rows_of(node), values_.data());
    // Without branches: each row is written to both sides, and kept on one.
    std::int32_t n_left = node.begin, n_right = 0;
    for (std::int32_t k = 0; k < node.end - node.begin; ++k) {
      const bool left = test.left(values_[k].x);
      rows_[n_left] = right_rows_[n_right] = values_[k].row;
      n_left += left;
      n_right += !left;
    }
    std::copy_n(right_rows_.begin(), n_right, rows_.begin() + n_left);
    return n_left;
  }

  const Inputs& X_;
  Scorer& scorer_;
  const Rules& rules_;
  const std::atomic<bool>& stopped_;
  Sample sample_{};
  Splitter<Inputs, Scorer> splitter_;
  std::vector<std::int32_t> rows_, right_rows_;
  std::vector<Value<typename Inputs::Element>> values_;
  std::vector<Candidate> frontier_;
  Tree tree_;
};

}  // namespace okforest
