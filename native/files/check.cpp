#include "files/check.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace okforest {

namespace {

std::string up_to(std::int64_t n) { return "0…" + std::to_string(n - 1); }

// Checks the nodes of one tree at a time.
class NodeCheck {
 public:
  NodeCheck(const ForestView& forest, std::int64_t n_features)
      : forest_(forest), n_features_(n_features) {}

  std::string problem(std::int64_t tree) {
    const std::int64_t root = forest_.node_offsets[tree];
    const std::int64_t n = forest_.node_offsets[tree + 1] - root;
    const std::int64_t n_members = forest_.member_offsets[tree + 1] - forest_.member_offsets[tree];
    const std::int64_t n_words = forest_.subset_offsets[tree + 1] - forest_.subset_offsets[tree];
    has_parent_.assign(static_cast<std::size_t>(n), 0);
    bool bad_range = false, bad_weight = false, bad_leaf = false;
    for (std::int64_t node = 0; node < n; ++node) {
      const std::int64_t k = root + node;
      bad_range |= (forest_.begin[k] < 0) | (forest_.begin[k] >= forest_.end[k]) |
                   (forest_.end[k] > n_members);
      bad_weight |= !(forest_.weight[k] > 0.0 && std::isfinite(forest_.weight[k]));
      if (forest_.left[k] == -1) {
        bad_leaf |= forest_.feature[k] != -1;
      } else if (std::string found = problem_of_split(node, k, n, n_words); !found.empty()) {
        return found;
      }
    }
    if (bad_leaf) return "a leaf tests a feature";
    if (bad_range) return "a node's range of members is empty or outside its tree";
    if (bad_weight) return "a node's weight is not a positive number";
    return {};
  }

 private:
  std::string problem_of_split(std::int64_t node, std::int64_t k, std::int64_t n_nodes,
                               std::int64_t n_words) {
    const std::int64_t left = forest_.left[k];
    // Children come after their parent: there are no cycles.
    if (left <= node) return "a node's left child is not after the node";
    if (left + 1 >= n_nodes) return "a child is outside its tree";
    if (has_parent_[left] | has_parent_[left + 1]) return "a node has two parents";
    has_parent_[left] = has_parent_[left + 1] = 1;
    const std::int64_t feature = forest_.feature[k];
    if (feature < 0 || feature >= n_features_) {
      return "a node tests a feature outside " + up_to(n_features_);
    }
    const std::int64_t first = forest_.subset[k];
    if (first == -1) return {};
    const std::int64_t width = (std::int64_t{forest_.n_categories[feature]} + 63) / 64;
    if (width <= 0) return "a categorical test is on a numeric feature";
    if (first < 0 || first + width > n_words) return "a node's subset is outside its tree's words";
    return {};
  }

  const ForestView& forest_;
  const std::int64_t n_features_;
  std::vector<std::uint8_t> has_parent_;
};

// Whether a condition, of which the loop is free of branches, holds for all values.
template <class T, class F>
bool all(std::span<const T> values, Pace& pace, const F& holds) {
  constexpr std::size_t block = 1 << 16;
  for (std::size_t begin = 0; begin < values.size(); begin += block) {
    const auto part = values.subspan(begin, std::min(block, values.size() - begin));
    bool good = true;
    for (const T value : part) good &= holds(value);
    if (!good) return false;
    pace.advance(static_cast<std::int64_t>(part.size() / 8));
  }
  return true;
}

}  // namespace

std::string problem_of(const ForestView& forest, std::int64_t n_features, Watch& watch) {
  Pace pace(watch);
  const auto n_train = static_cast<std::int64_t>(forest.row_weight.size());
  // As bytes: a bool that is neither 0 nor 1 is undefined behaviour.
  const std::span<const std::uint8_t> flags(
      reinterpret_cast<const std::uint8_t*>(forest.missing_left.data()),
      forest.missing_left.size());
  if (!all(flags, pace, [](std::uint8_t flag) { return flag <= 1; })) {
    return "missing_left has bytes other than 0 and 1";
  }
  if (static_cast<std::int64_t>(forest.n_categories.size()) != n_features ||
      !all(forest.n_categories, pace, [](std::int32_t n) { return n >= 0; })) {
    return "n_categories does not have one number ≥ 0 for each of " + std::to_string(n_features) +
           " features";
  }
  NodeCheck nodes(forest, n_features);
  for (std::int64_t t = 0; t < forest.n_trees(); ++t) {
    if (std::string found = nodes.problem(t); !found.empty()) return found;
    pace.advance(forest.node_offsets[t + 1] - forest.node_offsets[t]);
  }
  if (!all(forest.members, pace, [&](std::int32_t i) { return (i >= 0) & (i < n_train); })) {
    return "a member is outside the training rows " + up_to(n_train);
  }
  if (!all(forest.times, pace, [](std::int32_t n) { return n > 0; })) {
    return "times does not have one number > 0 for each member";
  }
  const auto good_weight = [](double w) { return w >= 0.0 && std::isfinite(w); };
  if (!all(forest.row_weight, pace, good_weight)) return "a row's weight is not a number ≥ 0";
  return {};
}

}  // namespace okforest
