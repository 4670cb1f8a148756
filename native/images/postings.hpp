// An inverted file on the leaves of totally randomised trees: the leaves that byte features reach,
// and the images that are posted there.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/watch.hpp"

namespace okforest {

// The test of an inner node. The inner nodes of a tree are in preorder: the left subtree of node k
// begins at k + 1 and ends before `right`, where the right subtree begins. An empty subtree is a
// leaf. Leaves are numbered from left to right, so that a tree of n inner nodes has leaves 0 .. n.
struct ByteNode {
  std::uint32_t test;  // feature << 8 | threshold: values above the threshold go right
  std::uint32_t right;

  std::uint32_t feature() const { return test >> 8; }
  bool goes_right(const std::uint8_t* row) const { return row[feature()] > (test & 255); }
};

// Trees one after the other: the nodes of tree t begin at offsets[t], its leaves at offsets[t] + t.
struct ByteTrees {
  std::span<const ByteNode> nodes;
  std::span<const std::int64_t> offsets;

  std::int64_t n_trees() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
};

// Returns whether these are trees on n_features features, so that every walk ends in a leaf.
bool are_trees(const ByteTrees& trees, std::int64_t n_features);

// leaves[i * n_trees + t]: the leaf of tree t, among the leaves of all trees, that row i reaches.
// Throws Stopped if the watch stops it.
void reach_leaves(const ByteTrees& trees, std::span<const std::uint8_t> values,
                  std::int64_t n_features, int n_threads, Watch& watch,
                  std::span<std::uint32_t> leaves);

// Postings in ascending order of leaves. Bucket b has those of leaves b << shift onwards; they
// begin at offsets[b]. `low` is the leaf's number in its bucket.
struct Postings {
  std::span<const std::uint64_t> offsets;
  std::span<const std::uint16_t> low;
  std::span<const std::uint32_t> image;
  std::span<const std::uint8_t> count;  // subwindows of the image in the leaf
  int shift;
};

struct PostingRange {
  std::uint64_t begin;
  std::uint64_t end;
};

// The postings of each leaf. Throws std::invalid_argument if the arrays are damaged.
std::vector<PostingRange> find_postings(const Postings& postings,
                                        std::span<const std::uint32_t> leaves);

// Adds to sizes[k] the counts of range k, without those of the images that are removed, if any are
// (`removed` is empty otherwise). Throws std::invalid_argument if an image is out of range.
void add_sizes(const Postings& postings, std::span<const PostingRange> ranges,
               std::span<const bool> removed, std::span<std::uint64_t> sizes);

// Adds times[k] * count / sizes[k] to the score of each image posted in range k, in the order of
// ranges: the sum of an image does not depend on the other images. Empty leaves are left out.
void add_scores(const Postings& postings, std::span<const PostingRange> ranges,
                std::span<const std::uint32_t> times, std::span<const std::uint64_t> sizes,
                std::span<double> scores);

}  // namespace okforest
