// The arrays of a grown forest.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "core/aligned_array.hpp"

namespace okforest {

// A node of a tree; see ForestView for the fields.
struct TreeNode {
  std::int32_t feature = -1, subset = -1, left = -1;
  std::int32_t begin, end;
  char missing_left = 0;     // a bool
  std::int32_t n_words = 0;  // of its subset
  double threshold = 0.0;
  double weight, variance = 0.0;
};

struct Tree {
  std::vector<TreeNode> nodes;
  std::vector<std::int32_t> members, times;
  std::vector<std::uint64_t> subset_words;

  // Puts a tree, grown from some of the members, in the place of a leaf that holds them.
  void graft(std::int32_t leaf, const Tree& branch);
};

// All trees, concatenated: an array for each field of ForestView.
struct Forest {
  AlignedArray<std::int64_t> node_offsets{0}, member_offsets{0}, subset_offsets{0};
  AlignedArray<std::int32_t> feature, subset, left, begin, end, members, times;
  AlignedArray<double> threshold, weight, variance;
  AlignedArray<char> missing_left;
  AlignedArray<std::uint64_t> subset_words;
};

// Concatenates trees that several threads finish in any order. A tree that comes before its turn is
// kept until then.
class Joiner {
 public:
  explicit Joiner(std::int64_t n_trees) : waiting_(static_cast<std::size_t>(n_trees)) {}

  void add(std::int64_t number, Tree&& tree);

  // The forest, after all trees have been added.
  Forest take() { return std::move(forest_); }

 private:
  void append(const Tree& tree);
  template <class T>
  T* extend(AlignedArray<T>& all, std::size_t n) const;

  std::mutex mutex_;
  Forest forest_;
  std::size_t n_joined_ = 0;
  std::vector<std::optional<Tree>> waiting_;
};

}  // namespace okforest
