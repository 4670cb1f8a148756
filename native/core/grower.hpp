// Growing one tree, or a branch of it: the order of its nodes, and the stopping rules.
#pragma once

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/forest.hpp"
#include "core/splitter.hpp"

namespace okforest {

// A node to grow a branch from.
struct Stem {
  std::vector<std::int32_t> rows;
  std::int32_t depth = 0;
  std::uint64_t seed = 0;
  double tree_weight = 0.0;  // of the whole tree
  std::int32_t leaf = 0;     // of the tree's top, which the branch takes the place of
};

template <class Inputs, Scorer S>
class Grower {
 public:
  Grower(const Inputs& X, std::unique_ptr<S> scorer, const Rules& rules, Ranks<Inputs>* ranks,
         const std::atomic<bool>& stopped)
      : X_(X),
        scorer_(std::move(scorer)),
        rules_(rules),
        stopped_(stopped),
        splitter_(X, *scorer_, rules, ranks, stopped) {}

  // Grows a tree, or a branch of it. In a tree of more than stem_rows rows, nodes of at most that
  // many are left as leaves and added to `left`. The tree may be moved; it is valid until the next
  // call.
  Tree& grow(const Sample& sample, const Stem& stem, std::size_t stem_rows,
             std::vector<Stem>& left) {
    if (stem.rows.size() <= stem_rows) stem_rows = 0;
    begin(sample, stem);
    push(make_node(0, static_cast<std::int32_t>(rows_.size()), stem.depth, stem.seed));
    for (std::int32_t n_leaves = 1; !frontier_.empty() && n_leaves < rules_.max_leaf_nodes;) {
      if (stopped_) break;
      Candidate candidate = pop();
      const Node& node = candidate.node;
      if (const Rows rows = rows_of(node); rows.size() <= stem_rows) {
        left.push_back({{rows.begin(), rows.end()}, node.depth, node.seed, weight_, node.id});
        continue;
      }
      // If gains order the frontier, the split is known. Otherwise it is searched only now, since a
      // node that is never popped needs none.
      const bool known = rules_.order == GrowthOrder::gain;
      if (!known && !(open(candidate) && find_split(candidate))) continue;
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
    explicit Candidate(const Node& of) : node(of) {}

    Node node;
    typename S::Frame* frame = nullptr;  // since it was opened
    Split split;
    double priority = 0.0;
  };

  bool depth_first() const { return rules_.order == GrowthOrder::depth; }

  void begin(const Sample& sample, const Stem& stem) {
    sample_ = sample;
    depth_ = stem.depth;
    scorer_->begin(sample.plain ? std::span<const double>{} : sample.weight, stem.rows);
    splitter_.begin(sample);
    rows_ = stem.rows;
    weight_ = stem.depth == 0 ? sample.weight_of(rows_) : stem.tree_weight;
    right_rows_.resize(rows_.size() + 1);
    values_.resize(rows_.size());
    frontier_.clear();
    tree_.nodes.clear();
    tree_.nodes.reserve(2 * rows_.size());
    tree_.times.clear();
    tree_.subset_words.clear();
  }

  Node make_node(std::int32_t begin, std::int32_t end, std::int32_t depth, std::uint64_t seed) {
    Node node{static_cast<std::int32_t>(tree_.nodes.size()), begin, end, depth, seed};
    node.weight = sample_.weight_of(rows_of(node));
    node.lightest = sample_.lightest_of(rows_of(node));
    node.count = sample_.count_of(rows_of(node));
    tree_.nodes.push_back({.begin = begin, .end = end, .weight = node.weight});
    return node;
  }

  Rows rows_of(const Node& node) const {
    return Rows(rows_).subspan(node.begin, node.end - node.begin);
  }

  // Enters the node in the scorer and returns whether it may be split.
  bool open(Candidate& candidate) {
    Node& node = candidate.node;
    // The frames of the nodes above are kept, by depth. Best first there is only one: the parent of
    // a node may have been opened long ago.
    const std::size_t level = depth_first() ? static_cast<std::size_t>(node.depth - depth_) : 0;
    while (frames_.size() <= level) frames_.emplace_back();
    candidate.frame = &frames_[level];
    scorer_->enter(node, rows_of(node), level > 0 ? &frames_[level - 1] : nullptr,
                   *candidate.frame);
    const double error = sample_.error_of(rows_of(node));
    node.noise += error;
    if (error > 0.0 && node.variance < node.noise) node.variance = 0.0;  // equal outputs
    tree_.nodes[node.id].variance = node.variance;
    if (node.depth >= rules_.max_depth) return false;
    if (fewer(node.count, rules_.min_samples_split) ||
        fewer(node.count, 2 * rules_.min_samples_leaf)) {
      return false;
    }
    return !rules_.stop_when_pure || node.variance > 0.0;
  }

  bool find_split(Candidate& candidate) {
    const Node& node = candidate.node;
    splitter_.search(node, rows_of(node), *candidate.frame, candidate.split);
    const double gain = candidate.split.gain * (1.0 + kTie) + node.noise;
    return candidate.split.found() && gain >= rules_.min_impurity_decrease * weight_;
  }

  void push(const Node& node) {
    if (node.end - node.begin < 2) return;  // a leaf of variance zero
    Candidate& candidate = frontier_.emplace_back(node);
    if (depth_first()) return;
    const bool by_gain = rules_.order == GrowthOrder::gain;
    if (!open(candidate) || (by_gain && !find_split(candidate))) return frontier_.pop_back();
    candidate.priority = coarse(by_gain ? candidate.split.gain : candidate.node.variance);
    std::push_heap(frontier_.begin(), frontier_.end(), later);
  }

  Candidate pop() {
    if (!depth_first()) std::pop_heap(frontier_.begin(), frontier_.end(), later);
    Candidate candidate = std::move(frontier_.back());
    frontier_.pop_back();
    return candidate;
  }

  static bool later(const Candidate& a, const Candidate& b) {
    return a.priority != b.priority ? a.priority < b.priority : a.node.id > b.node.id;
  }

  void split(const Candidate& candidate) {
    const Node& node = candidate.node;
    const std::int32_t middle = partition(node, candidate.split);
    assert(node.begin < middle && middle < node.end);
    TreeNode& grown = tree_.nodes[node.id];
    grown.feature = candidate.split.feature;
    grown.threshold = candidate.split.threshold;
    grown.missing_left = candidate.split.missing_left;
    if (const auto& words = candidate.split.subset; !words.empty()) {
      grown.subset = static_cast<std::int32_t>(tree_.subset_words.size());
      grown.n_words = static_cast<std::int32_t>(words.size());
      tree_.subset_words.insert(tree_.subset_words.end(), words.begin(), words.end());
    }
    grown.left = static_cast<std::int32_t>(tree_.nodes.size());
    const Node left = make_node(node.begin, middle, node.depth + 1, derive(node.seed, 1));
    const Node right = make_node(middle, node.end, node.depth + 1, derive(node.seed, 2));
    // Two single rows are never entered.
    const bool last = node.end - node.begin == 2;
    scorer_->divide(depth_first() && !last ? candidate.frame : nullptr, rows_of(left),
                    rows_of(right));
    push(right);
    push(left);
  }

  // Moves the rows that go left before those that go right, keeping the order within each side.
  std::int32_t partition(const Node& node, const Split& split) {
    if (!split.left.empty() && rules_.order != GrowthOrder::gain) {
      const auto middle = std::ranges::copy(split.left, rows_.begin() + node.begin).out;
      std::ranges::copy(split.right, middle);
      return static_cast<std::int32_t>(middle - rows_.begin());
    }
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
  const std::unique_ptr<S> scorer_;
  const Rules& rules_;
  const std::atomic<bool>& stopped_;
  Sample sample_{};
  std::int32_t depth_ = 0;  // of the branch's root
  double weight_ = 0.0;     // of the tree
  Splitter<Inputs, S> splitter_;
  std::deque<typename S::Frame> frames_;
  std::vector<std::int32_t> rows_, right_rows_;
  std::vector<Value<typename Inputs::Element>> values_;
  std::vector<Candidate> frontier_;
  Tree tree_;
};

}  // namespace okforest
