#include "core/forest.hpp"

#include <algorithm>

namespace okforest {

void Tree::graft(std::int32_t leaf, const Tree& branch) {
  // The root of the branch takes the place of the leaf; its other nodes follow.
  const auto first_node = static_cast<std::int32_t>(nodes.size()) - 1;
  const auto first_word = static_cast<std::int32_t>(subset_words.size());
  const std::int32_t begin = nodes[leaf].begin;
  std::ranges::copy(branch.members, members.begin() + begin);
  subset_words.insert(subset_words.end(), branch.subset_words.begin(), branch.subset_words.end());
  for (std::size_t k = 0; k < branch.nodes.size(); ++k) {
    TreeNode node = branch.nodes[k];
    node.begin += begin;
    node.end += begin;
    if (node.left >= 0) node.left += first_node;
    if (node.subset >= 0) node.subset += first_word;
    if (k == 0) {
      nodes[leaf] = node;
    } else {
      nodes.push_back(node);
    }
  }
}

void Joiner::add(std::int64_t number, Tree&& tree) {
  std::lock_guard lock(mutex_);
  waiting_[number] = std::move(tree);
  for (; n_joined_ < waiting_.size() && waiting_[n_joined_]; waiting_[n_joined_++].reset()) {
    append(*waiting_[n_joined_]);
  }
}

void Joiner::append(const Tree& tree) {
  const std::size_t n_nodes = tree.nodes.size();
  std::int32_t* const feature = extend(forest_.feature, n_nodes);
  std::int32_t* const subset = extend(forest_.subset, n_nodes);
  std::int32_t* const left = extend(forest_.left, n_nodes);
  std::int32_t* const begin = extend(forest_.begin, n_nodes);
  std::int32_t* const end = extend(forest_.end, n_nodes);
  char* const missing_left = extend(forest_.missing_left, n_nodes);
  double* const threshold = extend(forest_.threshold, n_nodes);
  double* const weight = extend(forest_.weight, n_nodes);
  double* const variance = extend(forest_.variance, n_nodes);
  std::uint64_t* const words = extend(forest_.subset_words, tree.subset_words.size());
  std::ranges::copy(tree.members, extend(forest_.members, tree.members.size()));
  std::ranges::copy(tree.times, extend(forest_.times, tree.times.size()));

  // Nodes are numbered by level, from left to right, whatever the order of growth. Until a node is
  // visited, `left` has its number in the tree, which is zero for the root.
  std::int32_t n_numbered = 1, n_words = 0;
  for (std::size_t k = 0; k < n_nodes; ++k) {
    const TreeNode& node = tree.nodes[left[k]];
    feature[k] = node.feature;
    begin[k] = node.begin;
    end[k] = node.end;
    missing_left[k] = node.missing_left;
    threshold[k] = node.threshold;
    weight[k] = node.weight;
    variance[k] = node.variance;
    left[k] = subset[k] = -1;
    if (node.left < 0) continue;
    left[k] = n_numbered;
    left[n_numbered++] = node.left;
    left[n_numbered++] = node.left + 1;
    if (node.subset < 0) continue;
    subset[k] = n_words;
    std::copy_n(tree.subset_words.begin() + node.subset, node.n_words, words + n_words);
    n_words += node.n_words;
  }
  const auto size = [](const auto& all) { return static_cast<std::int64_t>(all.size()); };
  forest_.node_offsets.push_back(size(forest_.feature));
  forest_.member_offsets.push_back(size(forest_.members));
  forest_.subset_offsets.push_back(size(forest_.subset_words));
}

// Adds n zeros and returns where they begin. Reserves memory for all trees, assuming that the rest
// are as large as those so far. Reserved memory that is never written to is not used.
template <class T>
T* Joiner::extend(AlignedArray<T>& all, std::size_t n) const {
  const std::size_t old_size = all.size(), size = old_size + n;
  if (size > all.capacity()) {
    const double per_tree = static_cast<double>(size) / static_cast<double>(n_joined_ + 1);
    const double expected = 1.05 * per_tree * static_cast<double>(waiting_.size());
    all.reserve(std::max(size, static_cast<std::size_t>(expected)));
  }
  all.resize(size);
  return all.data() + old_size;
}

}  // namespace okforest
