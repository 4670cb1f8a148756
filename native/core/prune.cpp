#include "core/prune.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace okforest {

namespace {

// Cuts the weakest link repeatedly: the branch that saves the least cost per leaf.
class Pruner {
 public:
  Pruner(const ForestView& tree, Watch& watch)
      : tree_(tree),
        pace_(watch),
        parent_(tree.left.size(), -1),
        cost_(tree.left.size()),
        n_leaves_(tree.left.size()),
        fate_(tree.left.size(), 0) {
    for (auto node = static_cast<std::int32_t>(tree.left.size()) - 1; node >= 0; --node) {
      // Children have larger numbers than their parent.
      if (tree_.left[node] < 0) {
        cost_[node] = own_cost(node);
        n_leaves_[node] = 1;
        continue;
      }
      const std::int32_t left = tree_.left[node];
      cost_[node] = cost_[left] + cost_[left + 1];
      n_leaves_[node] = n_leaves_[left] + n_leaves_[left + 1];
      parent_[left] = parent_[left + 1] = node;
      links_.insert({strength(node), node});
      pace_.advance(1);
    }
  }

  double cost() const { return cost_[0]; }
  bool done() const { return links_.empty(); }
  double weakest() const { return links_.begin()->first; }

  void cut_weakest() {
    const std::int32_t node = links_.begin()->second;
    remove_below(node);
    links_.erase({strength(node), node});
    fate_[node] = 1;
    const double more_cost = own_cost(node) - cost_[node];
    const std::int32_t fewer_leaves = n_leaves_[node] - 1;
    cost_[node] += more_cost;
    n_leaves_[node] = 1;
    for (auto above = parent_[node]; above >= 0; above = parent_[above]) {
      links_.erase({strength(above), above});
      cost_[above] += more_cost;
      n_leaves_[above] -= fewer_leaves;
      links_.insert({strength(above), above});
      pace_.advance(1);
    }
  }

  std::vector<std::int8_t> fate() const { return fate_; }

 private:
  double own_cost(std::int32_t node) const { return tree_.variance[node] / tree_.weight[0]; }

  double strength(std::int32_t node) const {
    return std::max(0.0, (own_cost(node) - cost_[node]) / (n_leaves_[node] - 1));
  }

  void remove_below(std::int32_t top) {
    std::vector<std::int32_t> stack{top};
    while (!stack.empty()) {
      const std::int32_t left = tree_.left[stack.back()];
      stack.pop_back();
      for (const std::int32_t child : {left, left + 1}) {
        // Below a leaf, original or pruned, there is nothing left to remove.
        const bool is_split = fate_[child] == 0 && tree_.left[child] >= 0;
        fate_[child] = 2;
        if (!is_split) continue;
        links_.erase({strength(child), child});
        stack.push_back(child);
      }
      pace_.advance(1);
    }
  }

  const ForestView& tree_;
  Pace pace_;
  std::vector<std::int32_t> parent_;
  std::vector<double> cost_;            // of the remaining branch below each node
  std::vector<std::int32_t> n_leaves_;  // number of its leaves
  std::vector<std::int8_t> fate_;
  std::set<std::pair<double, std::int32_t>> links_;  // split nodes by the strength of their branch
};

}  // namespace

PruningPath pruning_path(const ForestView& tree, Watch& watch) {
  Pruner pruner(tree, watch);
  PruningPath path{{0.0}, {pruner.cost()}};
  while (!pruner.done()) {
    // Rounding errors may make a later link slightly weaker, but alphas never decrease.
    const double alpha = std::max(pruner.weakest(), path.alphas.back());
    pruner.cut_weakest();
    if (alpha > path.alphas.back()) {
      path.alphas.push_back(alpha);
      path.costs.push_back(pruner.cost());
    } else {
      path.costs.back() = pruner.cost();
    }
  }
  return path;
}

std::vector<std::int8_t> prune(const ForestView& tree, double alpha, Watch& watch) {
  Pruner pruner(tree, watch);
  while (!pruner.done() && pruner.weakest() <= alpha) pruner.cut_weakest();
  return pruner.fate();
}

}  // namespace okforest
