#include "images/postings.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <stdexcept>

#include "core/parallel.hpp"

namespace okforest {

namespace {

constexpr std::int64_t kRowsOfTask = 1024;
constexpr std::size_t kLanes = 32;      // walks that wait for memory together
constexpr std::size_t kAhead = 8;       // leaves ahead whose postings are prefetched
constexpr std::uint64_t kLongest = 64;  // bucket that is searched from its beginning

// A walk from the root of a tree to a leaf. The subtree that it is in has the nodes from `node` to
// `end`, and its first leaf is `leaf`.
struct Walk {
  const std::uint8_t* values;  // of the row
  std::uint32_t* result;
  std::uint32_t node;
  std::uint32_t end;
  std::uint32_t leaf;

  bool at_leaf() const { return node == end; }
  // Without branches: half of them would be predicted wrongly.
  void step(const ByteNode* nodes) {
    const ByteNode here = nodes[node];
    const std::uint32_t right = -static_cast<std::uint32_t>(here.goes_right(values));  // a mask
    const std::uint32_t n_left = here.right - node;  // leaves of the left subtree
    leaf += n_left & right;
    end ^= (end ^ here.right) & ~right;
    node += 1 + ((n_left - 1) & right);
  }
};

// Walks rows down a tree, several at a time: a row takes its next step once its node is in cache.
void walk_rows(std::span<const ByteNode> nodes, const std::uint8_t* values, std::int64_t n_features,
               std::int64_t begin, std::int64_t end, std::uint32_t first_leaf, std::int64_t n_trees,
               std::uint32_t* leaves) {
  const auto n_nodes = static_cast<std::uint32_t>(nodes.size());
  std::array<Walk, kLanes> walks;
  std::size_t n_walks = 0;
  std::int64_t next = begin;
  const auto start = [&] {
    const std::int64_t row = next++;
    return Walk{values + row * n_features, leaves + row * n_trees, 0, n_nodes, 0};
  };
  while (n_walks < kLanes && next < end) walks[n_walks++] = start();
  while (n_walks > 0) {
    for (std::size_t k = 0; k < n_walks;) {
      Walk& walk = walks[k];
      if (!walk.at_leaf()) {
        walk.step(nodes.data());
        __builtin_prefetch(nodes.data() + walk.node);
        ++k;
        continue;
      }
      *walk.result = first_leaf + walk.leaf;
      if (next < end) {
        walk = start();
      } else {
        walk = walks[--n_walks];
      }
    }
  }
}

bool is_tree(std::span<const ByteNode> nodes, std::int64_t n_features) {
  const auto n = static_cast<std::uint32_t>(nodes.size());
  std::vector<std::uint32_t> ends(nodes.size());  // of the subtree that begins at each node
  if (n > 0) ends[0] = n;
  for (std::uint32_t k = 0; k < n; ++k) {
    const std::uint32_t right = nodes[k].right;
    if (nodes[k].feature() >= n_features || right <= k || right > ends[k]) return false;
    if (right > k + 1) ends[k + 1] = right;
    if (right < ends[k]) ends[right] = ends[k];
  }
  return true;
}

}  // namespace

bool are_trees(const ByteTrees& trees, std::int64_t n_features) {
  const auto& offsets = trees.offsets;
  if (offsets.size() < 2 || offsets.front() != 0 || n_features < 1) return false;
  if (offsets.back() != static_cast<std::int64_t>(trees.nodes.size())) return false;
  // Leaves of all trees are numbered in 32 bits.
  if (offsets.back() + trees.n_trees() > std::int64_t{0xFFFFFFFF}) return false;
  for (std::size_t t = 0; t + 1 < offsets.size(); ++t) {
    if (offsets[t] > offsets[t + 1] || offsets[t + 1] > offsets.back()) return false;
  }
  for (std::size_t t = 0; t + 1 < offsets.size(); ++t) {
    const auto size = static_cast<std::size_t>(offsets[t + 1] - offsets[t]);
    if (!is_tree(trees.nodes.subspan(static_cast<std::size_t>(offsets[t]), size), n_features)) {
      return false;
    }
  }
  return true;
}

void reach_leaves(const ByteTrees& trees, std::span<const std::uint8_t> values,
                  std::int64_t n_features, int n_threads, Watch& watch,
                  std::span<std::uint32_t> leaves) {
  const std::int64_t n_trees = trees.n_trees();
  const auto n_rows = static_cast<std::int64_t>(values.size()) / n_features;
  const auto walk = [&](std::int64_t begin, std::int64_t end, Pace& pace) {
    for (std::int64_t t = 0; t < n_trees; ++t) {
      const std::int64_t first = trees.offsets[t];
      const auto size = static_cast<std::size_t>(trees.offsets[t + 1] - first);
      walk_rows(trees.nodes.subspan(static_cast<std::size_t>(first), size), values.data(),
                n_features, begin, end, static_cast<std::uint32_t>(first + t), n_trees,
                leaves.data() + t);
      pace.advance(32 * (end - begin));
    }
  };
  parallel_blocks(n_rows, kRowsOfTask, n_threads, watch, walk);
}

std::vector<PostingRange> find_postings(const Postings& postings,
                                        std::span<const std::uint32_t> leaves) {
  const std::uint64_t* offsets = postings.offsets.data();
  const std::uint16_t* low = postings.low.data();
  const std::uint64_t n_buckets = postings.offsets.size() - 1, n = postings.low.size();
  const std::uint32_t mask = (std::uint32_t{1} << postings.shift) - 1;
  std::vector<PostingRange> ranges(leaves.size());
  for (const std::uint32_t leaf : leaves) {
    if (leaf >> postings.shift >= n_buckets) {
      throw std::invalid_argument("a leaf is not in these postings");
    }
  }
  // First the buckets, then the leaves in them: the loads of each loop are independent.
  for (std::size_t k = 0; k < leaves.size(); ++k) {
    if (k + kAhead < leaves.size())
      __builtin_prefetch(offsets + (leaves[k + kAhead] >> postings.shift));
    const std::uint64_t* bucket = offsets + (leaves[k] >> postings.shift);
    ranges[k] = {bucket[0], bucket[1]};
    if (bucket[0] > bucket[1] || bucket[1] > n) {
      throw std::invalid_argument("the offsets of postings do not ascend");
    }
    __builtin_prefetch(low + bucket[0]);
  }
  for (std::size_t k = 0; k < leaves.size(); ++k) {
    const auto wanted = static_cast<std::uint16_t>(leaves[k] & mask);
    auto [begin, end] = ranges[k];
    if (end - begin > kLongest) {
      begin = static_cast<std::uint64_t>(std::lower_bound(low + begin, low + end, wanted) - low);
    } else {
      while (begin < end && low[begin] < wanted) ++begin;
    }
    std::uint64_t last = begin;
    if (end - begin > kLongest) {
      last = static_cast<std::uint64_t>(std::upper_bound(low + begin, low + end, wanted) - low);
    } else {
      while (last < end && low[last] == wanted) ++last;
    }
    ranges[k] = {begin, last};
    __builtin_prefetch(postings.count.data() + begin);
    __builtin_prefetch(postings.image.data() + begin);
  }
  return ranges;
}

void add_sizes(const Postings& postings, std::span<const PostingRange> ranges,
               std::span<const bool> removed, std::span<std::uint64_t> sizes) {
  const std::uint8_t* count = postings.count.data();
  for (std::size_t k = 0; k < ranges.size(); ++k) {
    std::uint64_t size = 0;
    if (removed.empty()) {
      for (std::uint64_t i = ranges[k].begin; i < ranges[k].end; ++i) size += count[i];
    } else {
      for (std::uint64_t i = ranges[k].begin; i < ranges[k].end; ++i) {
        const std::uint32_t image = postings.image[i];
        if (image >= removed.size()) throw std::invalid_argument("a posting is of no image");
        size += removed[image] ? 0 : count[i];
      }
    }
    sizes[k] += size;
  }
}

void add_scores(const Postings& postings, std::span<const PostingRange> ranges,
                std::span<const std::uint32_t> times, std::span<const std::uint64_t> sizes,
                std::span<double> scores) {
  for (std::size_t k = 0; k < ranges.size(); ++k) {
    if (sizes[k] == 0) continue;
    const auto size = static_cast<double>(sizes[k]);
    for (std::uint64_t i = ranges[k].begin; i < ranges[k].end; ++i) {
      const std::uint32_t image = postings.image[i];
      if (image >= scores.size()) throw std::invalid_argument("a posting is of no image");
      scores[image] += static_cast<double>(std::uint64_t{times[k]} * postings.count[i]) / size;
    }
  }
}

}  // namespace okforest
