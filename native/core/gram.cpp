#include "core/gram.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/factor.hpp"
#include "core/gathered_sum.hpp"

namespace okforest {

namespace {

// A branch gets its own block if the current one has at least kShrink times its rows. Blocks of up
// to kSmallBlock rows stay in cache as they are.
constexpr std::int64_t kShrink = 3;
constexpr std::int64_t kSmallBlock = 64;

// Below this fraction of its scale, a variance has lost digits by cancellation.
constexpr double kLoss = 1e-3;
constexpr double kMaxLoss = 1e3;  // in digits of sums derived by subtraction

// Rounding errors of an entry of a matrix that was centred, relative to its diagonal before.
constexpr double kEntryError = 4 * kEpsilon;

}  // namespace

GramScorer::GramScorer(const GramOutputs& outputs)
    : n_rows_(outputs.exact.n_rows),
      blocks_(1),
      squared_norm_(static_cast<std::size_t>(n_rows_)),
      row_scales_(outputs.rows.scales),
      root_reach_(outputs.rows.sums.begin(), outputs.rows.sums.end()),
      place_(squared_norm_.size()),
      place_weight_(squared_norm_.size()),
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
      place_weight_(squared_norm_.size()),
      terms_(squared_norm_.size()),
      number_(squared_norm_.size()) {}

void GramScorer::begin_branch(Rows rows) {
  blocks_[0].compute(*factor_, rows, factor_->row(rows[0]), packed_);
}

void GramScorer::begin(std::span<const double> weight, Rows) {
  weight_ = weight;
  plain_ = weight.empty();
}

void GramScorer::find_places(const Block& block, Rows rows) {
  for (std::size_t k = 0; k < rows.size(); ++k) place_[k] = block.home[rows[k]];
  if (plain_) return;
  for (std::size_t k = 0; k < rows.size(); ++k) place_weight_[k] = weight_[rows[k]];
}

void GramScorer::enter(Node& node, Rows rows, const Frame* parent, Frame& frame) {
  const bool derived = parent != nullptr && !parent->part.empty();
  frame.block = parent == nullptr ? 0 : parent->block;
  assert(frame.block < blocks_.size());
  frame.weight = node.weight;
  frame.part = {};
  const Block* const known = &blocks_[frame.block];
  const auto n = static_cast<std::int64_t>(rows.size());
  if (known->n > kSmallBlock && kShrink * n <= known->n) frame.block = pack(frame.block, rows);
  frame.reach.resize(static_cast<std::size_t>(block(frame).n));
  frame.rounding = 0.0;
  if (derived) {
    // `pack` may have moved the blocks.
    const std::int32_t* const from = blocks_[parent->block].home;
    const std::int32_t* const to = block(frame).home;
    const bool is_part = rows.data() == parent->part.data() && rows.size() == parent->part.size();
    for (const auto i : rows) {
      const double part = parent->part_reach[from[i]];
      frame.reach[to[i]] = is_part ? part : parent->reach[from[i]] - part;
    }
    if (!is_part) frame.rounding = parent->rounding;
  } else if (plain_ && factor_ == nullptr && n == n_rows_) {
    if (root_reach_.empty()) {
      find_reach(block(frame), rows, frame.reach);
      root_reach_ = frame.reach;
    }
    frame.reach = root_reach_;
  } else {
    find_reach(block(frame), rows, frame.reach);
  }
  node.variance = measure(block(frame), rows, frame);
  const double size = frame.weight * frame.scale;
  if (derived && (node.variance < 10 * kLoss * frame.scale || frame.rounding > kMaxLoss * size)) {
    find_reach(block(frame), rows, frame.reach);
    node.variance = measure(block(frame), rows, frame);
    frame.rounding = 0.0;
  }
  frame.rounding += size;
  // After a loss of many digits by cancellation, a copy of the node's block is centred on its mean.
  // The matrix of all rows is not copied.
  const bool may_copy = factor_ != nullptr || frame.block > 0 || 4 * n <= 3 * block(frame).n;
  const double scale_before = std::abs(frame.scale);
  if (node.variance < kLoss * frame.scale && may_copy) {
    frame.block = pack(frame.block, rows);
    frame.reach.resize(rows.size());
    find_reach(block(frame), rows, frame.reach);
    node.variance = measure(block(frame), rows, frame);
    centre(blocks_[frame.block], rows, frame);
    node.variance = measure(block(frame), rows, frame);
  }
  node.scale = 0.0;
  for (const auto i : rows) node.scale += weight_of(i) * squared_norm_[i];
  // Entries that were computed here have the rounding errors of their own size. Others have those
  // of K's, and of what they were before K, or a block, was centred. The errors of a sum grow with
  // its length.
  const bool given = factor_ == nullptr;
  const double of_entries = given ? std::max(node.scale, frame.scale) : frame.scale;
  double rounding = (kRounding + static_cast<double>(n) / 2 * kEpsilon) * of_entries;
  if (given) rounding += kEntryError * scale_before;
  for (std::size_t k = 0; k < rows.size() && !row_scales_.empty(); ++k) {
    rounding += kEntryError * weight_of(rows[k]) * row_scales_[rows[k]];
  }
  if (node.variance < rounding) node.variance = 0.0;  // equal outputs
  node.noise = std::max(kNoise * node.variance, rounding);
}

// Makes a block of some rows of another, and returns its number.
std::size_t GramScorer::pack(std::size_t from, Rows rows) {
  if (blocks_.size() == from + 1) blocks_.emplace_back();
  blocks_[from + 1].copy(blocks_[from], rows, n_rows_);
  return from + 1;
}

// Makes the entries of a node's own block relative to its mean.
void GramScorer::centre(Block& block, Rows rows, Frame& frame) {
  if (factor_ != nullptr) {
    find_places(block, rows);
    origin_.resize(static_cast<std::size_t>(factor_->n_cols()));
    kernels().sum_rows(factor_->data(), factor_->n_cols(), rows,
                       plain_ ? nullptr : place_weight_.data(), origin_.data());
    for (double& x : origin_) x /= frame.weight;
    block.compute(*factor_, rows, origin_.data(), packed_);
    return find_reach(block, rows, frame.reach);
  }
  for (double& x : frame.reach) x /= frame.weight;
  block.shift(frame.reach.data(), frame.mean_norm);
  std::ranges::fill(frame.reach, 0.0);
}

// The inner products of some rows with their sum.
void GramScorer::find_reach(const Block& block, Rows rows, std::vector<double>& reach) {
  find_places(block, rows);
  const double* const weight = plain_ ? nullptr : place_weight_.data();
  if (static_cast<std::int64_t>(rows.size() * rows.size()) > block.n) {
    const Rows places(place_.data(), rows.size());
    return kernels().sum_rows(block.exact, block.n, places, weight, reach.data());
  }
  // The entries of the node are fewer than those of a whole row.
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const double* const row = block.exact + place_[k] * block.n;
    reach[place_[k]] =
        gathered_sum([&](std::size_t l) { return row[place_[l]]; }, weight, rows.size());
  }
}

// Sets the frame's mean norm and scale, and returns the total variance.
double GramScorer::measure(const Block& block, Rows rows, Frame& frame) const {
  double sum_norm = 0.0;
  frame.scale = 0.0;
  for (const auto i : rows) {
    const double w = weight_of(i);
    sum_norm += w * frame.reach[block.home[i]];
    frame.scale += w * block.diagonal(i);
  }
  frame.mean_norm = sum_norm / (frame.weight * frame.weight);
  return frame.scale - sum_norm / frame.weight;
}

void GramScorer::divide(Frame* frame, Rows left, Rows right) {
  if (frame == nullptr) return;
  frame->part = left.size() <= right.size() ? left : right;
  const Block& of_node = block(*frame);
  frame->part_reach.resize(static_cast<std::size_t>(of_node.n));
  find_places(of_node, frame->part);
  const double* const weight = plain_ ? nullptr : place_weight_.data();
  const std::size_t n = left.size() + right.size();
  if (8 * n > static_cast<std::size_t>(of_node.n)) {
    const Rows places(place_.data(), frame->part.size());
    kernels().sum_rows(of_node.exact, of_node.n, places, weight, frame->part_reach.data());
    return;
  }
  for (const Rows side : {left, right}) {
    for (const auto i : side) {
      const double* const row = of_node.row(i);
      frame->part_reach[of_node.home[i]] =
          gathered_sum([&](std::size_t l) { return row[place_[l]]; }, weight, frame->part.size());
    }
  }
}

double GramScorer::set_norm(const Node&, const Frame& frame, Rows rows, double weight) {
  const Block& of_node = block(frame);
  find_places(of_node, rows);
  const double* const weights = plain_ ? nullptr : place_weight_.data();
  double sum = 0.0, reach = 0.0;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const double* const row = of_node.exact + place_[k] * of_node.n;
    const double w = plain_ ? 1.0 : place_weight_[k];
    const double before = gathered_sum([&](std::size_t l) { return row[place_[l]]; }, weights, k);
    sum += w * (2.0 * before + w * row[place_[k]]);
    reach += w * frame.reach[place_[k]];
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

void GramScorer::prefix_norms(const Node&, Rows rows, const Frame& frame,
                              std::span<const Prefixes> lists, double* norms) {
  const Block& of_node = block(frame);
  const double* const weights = plain_ ? nullptr : place_weight_.data();
  std::size_t n_listed = 0;
  for (const Prefixes& list : lists) n_listed += list.rows.size();
  if (before_.size() < n_listed) before_.resize(n_listed);
  double* before = before_.data();
  for (const Prefixes& list : lists) {
    find_places(of_node, list.rows);
    for (std::size_t k = 0; k < list.rows.size(); ++k) {
      const double* const row = of_node.exact + place_[k] * of_node.n;
      *before++ = gathered_sum([&](std::size_t l) { return row[place_[l]]; }, weights, k);
    }
  }
  finish_prefixes(of_node, rows, frame, lists, norms);
}

void GramScorer::finish_prefixes(const Block& block, Rows rows, const Frame& frame,
                                 std::span<const Prefixes> lists, double* norms) {
  for (const auto i : rows) {
    const double w = weight_of(i);
    terms_[i] = {w, w * w * block.diagonal(i), w * frame.reach[block.home[i]]};
  }
  const double* before = before_.data();
  for (const Prefixes& list : lists) {
    double norm = 0.0, weight = 0.0, reach = 0.0;
    std::int32_t k = 0;
    for (const auto length : list.lengths) {
      for (; k < length; ++k) {
        const Terms& of_row = terms_[list.rows[k]];
        norm += of_row.weight * 2.0 * *before++ + of_row.norm;
        weight += of_row.weight;
        reach += of_row.reach;
      }
      *norms++ = centred(norm, weight, reach, frame);
    }
  }
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
