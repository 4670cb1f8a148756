#include "core/gram.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/factor.hpp"

namespace okforest {

namespace {

// A branch gets its own block if the current one has at least kShrink times its rows. Blocks of up
// to kSmallBlock rows stay in cache as they are.
constexpr std::int64_t kShrink = 3;
constexpr std::int64_t kSmallBlock = 64;

// In float64, a sum over k entries of a row, one by one, takes as long as one over this many times
// k entries of whole rows.
constexpr std::size_t kScarce = 8;

// Below this fraction of the scale of the entries, a node of a branch of vectors gets a block of
// its own.
constexpr double kTight = 1e-3;

}  // namespace

GramScorer::GramScorer(const GramOutputs& outputs)
    : n_rows_(outputs.exact.n_rows),
      blocks_(1),
      squared_norm_(static_cast<std::size_t>(n_rows_)),
      root_reach_(outputs.row_sums.begin(), outputs.row_sums.end()),
      place_(squared_norm_.size()),
      terms_(squared_norm_.size()),
      number_(squared_norm_.size()) {
  blocks_[0].view(outputs);
  // Rounding errors may make the norm of a centred output negative.
  for (std::int32_t i = 0; i < n_rows_; ++i) {
    squared_norm_[i] = std::abs(blocks_[0].diagonal(i));
  }
}

GramScorer::GramScorer(const FactorOutputs& factor)
    : n_rows_(factor.n_rows()),
      factor_(&factor),
      blocks_(1),
      squared_norm_(factor.squared_norms().begin(), factor.squared_norms().end()),
      place_(squared_norm_.size()),
      terms_(squared_norm_.size()),
      number_(squared_norm_.size()) {}

void GramScorer::begin_branch(Rows rows) { blocks_[0].compute(*factor_, rows, packed_); }

// Valid until the next call.
GramScorer::Places GramScorer::places_of(const Block& block, Rows rows) {
  for (std::size_t k = 0; k < rows.size(); ++k) place_[k] = block.home[rows[k]];
  return {Rows(place_).first(rows.size()), weights_of(rows)};
}

void GramScorer::enter(Node& node, Rows rows, const Frame* parent, Frame& frame) {
  const bool derived = parent != nullptr && !parent->part.empty();
  frame.block = parent == nullptr ? 0 : parent->block;
  assert(frame.block < blocks_.size());
  frame.weight = node.weight;
  frame.part = {};
  const std::int64_t n_before = blocks_[frame.block].n;
  const auto n = static_cast<std::int64_t>(rows.size());
  if (n_before > kSmallBlock && kShrink * n <= n_before) frame.block = pack(frame.block, rows);
  frame.reach.resize(static_cast<std::size_t>(block(frame).n));
  if (derived) {
    // `pack` may have moved the blocks.
    const std::int32_t* const from = blocks_[parent->block].home;
    const std::int32_t* const to = block(frame).home;
    const bool is_part = rows.data() == parent->part.data() && rows.size() == parent->part.size();
    for (const auto i : rows) {
      const double part = parent->part_reach[from[i]];
      frame.reach[to[i]] = is_part ? part : parent->reach[from[i]] - part;
    }
  } else if (plain() && factor_ == nullptr && n == n_rows_) {
    if (root_reach_.empty()) {
      find_reach(block(frame), rows, rows, frame.reach);
      root_reach_ = frame.reach;
    }
    frame.reach = root_reach_;
  } else {
    find_reach(block(frame), rows, rows, frame.reach);
  }
  node.variance = measure(block(frame), rows, frame);
  const auto measure_again = [&] {
    find_reach(block(frame), rows, rows, frame.reach);
    node.variance = measure(block(frame), rows, frame);
  };
  if (derived && (node.variance < kLoss * frame.scale || size(frame) < kLoss * size(*parent))) {
    measure_again();
  }
  // Outputs that hardly differ keep their digits in inner products around one of them.
  if (factor_ != nullptr && node.variance < kTight * frame.scale) {
    frame.block = next_block(frame.block);
    blocks_[frame.block].compute(*factor_, rows, packed_);
    measure_again();
  }
  const auto square = [&](std::size_t k) { return weight_of(rows[k]) * squared_norm_[rows[k]]; };
  node.scale = gathered_sum(square, rows.size());
  // Entries that were computed here have the rounding errors of their own size. The errors of a sum
  // grow with its length.
  const double rounding = (kRounding + static_cast<double>(n) / 2 * kEpsilon) *
                          (factor_ == nullptr ? node.scale : frame.scale);
  // Equal outputs, given the rounding errors of the entries, or those of the vectors.
  if (node.variance < rounding || (factor_ != nullptr && node.variance <= node.rounding())) {
    node.variance = 0.0;
  }
  node.noise = std::max(kNoise * node.variance, rounding);
  if (factor_ != nullptr) node.noise = std::max(node.noise, node.vector_noise());
}

// The number of a block that is free to be filled, given that of the last one in use.
std::size_t GramScorer::next_block(std::size_t last) {
  if (blocks_.size() == last + 1) blocks_.emplace_back();
  return last + 1;
}

// Makes a block of some rows of another, and returns its number.
std::size_t GramScorer::pack(std::size_t from, Rows rows) {
  const std::size_t to = next_block(from);
  blocks_[to].copy(blocks_[from], rows, n_rows_);
  return to;
}

// The inner products of a node's rows with the sum over a part of them.
void GramScorer::find_reach(const Block& block, Rows part, Rows rows, std::vector<double>& reach) {
  reach.resize(static_cast<std::size_t>(block.n));
  const Places places = places_of(block, part);
  if (kScarce * rows.size() > reach.size()) {
    return kernels().sum_rows(block.exact, block.n, places.at, places.weight, reach.data());
  }
  // The entries of the node are a small part of each row.
  for (const auto i : rows) reach[block.home[i]] = places.sum(block.row(i), part.size());
}

// Sets the frame's mean norm and scale, and returns the total variance.
double GramScorer::measure(const Block& block, Rows rows, Frame& frame) const {
  const auto reach = [&](std::size_t k) {
    return weight_of(rows[k]) * frame.reach[block.home[rows[k]]];
  };
  const auto square = [&](std::size_t k) { return weight_of(rows[k]) * block.diagonal(rows[k]); };
  const double sum_norm = gathered_sum(reach, rows.size());
  frame.scale = gathered_sum(square, rows.size());
  frame.mean_norm = sum_norm / (frame.weight * frame.weight);
  return frame.scale - sum_norm / frame.weight;
}

void GramScorer::divide(Frame* frame, Rows left, Rows right) {
  if (frame == nullptr) return;
  frame->part = left.size() <= right.size() ? left : right;
  const Rows both(left.data(), left.size() + right.size());
  find_reach(block(*frame), frame->part, both, frame->part_reach);
}

double GramScorer::set_norm(const Frame& frame, Rows rows, double weight) {
  const Block& of_node = block(frame);
  const Places places = places_of(of_node, rows);
  double sum = 0.0, reach = 0.0;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const double* const row = of_node.row(rows[k]);
    const double w = weight_of(rows[k]);
    sum += w * (2.0 * places.sum(row, k) + w * row[places.at[k]]);
    reach += w * frame.reach[places.at[k]];
  }
  return centred(sum, weight, reach, frame);
}

bool GramScorer::small_gram(Rows rows, const Frame& frame, SmallGram& gram) const {
  const Block& of_node = block(frame);
  gram.entries = of_node.exact;
  gram.stride = of_node.n;
  gram.mean_norm = frame.mean_norm;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    gram.place[k] = of_node.home[rows[k]];
    gram.reach[k] = frame.reach[gram.place[k]] / frame.weight;
  }
  return true;
}

void GramScorer::group_gram(const Frame& frame, Rows rows, Rows group,
                            std::span<const double> group_weight, std::span<double> sums) {
  const Block& of_node = block(frame);
  const std::size_t n = group_weight.size();
  std::vector<double> reach(n, 0.0);  // <sum of a group, node mean>
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const auto i = rows[k];
    const double* const row = of_node.row(i);
    reach[group[k]] += weight_of(i) * frame.reach[of_node.home[i]] / frame.weight;
    double* const out = &sums[group[k] * n];
    for (std::size_t l = 0; l < rows.size(); ++l) {
      out[group[l]] += weight_of(i) * weight_of(rows[l]) * row[of_node.home[rows[l]]];
    }
  }
  for (std::size_t g = 0; g < n; ++g) {
    for (std::size_t h = 0; h < n; ++h) {
      sums[g * n + h] += group_weight[g] * group_weight[h] * frame.mean_norm -
                         group_weight[g] * reach[h] - group_weight[h] * reach[g];
    }
  }
}

}  // namespace okforest
