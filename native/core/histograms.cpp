#include "core/histograms.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/parallel.hpp"

namespace okforest {

namespace {

// Histograms of at least this many sums of entries are computed by several threads.
constexpr std::int64_t kManySums = 1 << 17;

// All histograms together take at most this many bytes. Beyond, children compute both of theirs.
constexpr std::size_t kMostBytes = std::size_t{1} << 28;

// A histogram is not a difference of others if its node has less than this part of their scale, or
// a row of less than this part of the weight of all rows: digits would be lost.
constexpr double kMostLoss = 1e-4;
constexpr double kLeastWeight = 1e-9;

// Every row counts at least once; what is less is the rounding error of an empty bin.
constexpr double kLeastCount = 0.5;

// The rows of a tile that are prefetched, this many rows ahead.
constexpr std::size_t kAhead = 24;

// Adds entries of n_values numbers, and a count of one for each row if they have none, to the
// histograms of n features, row by row.
template <int n_values, bool counts, int n>
void add_rows(const std::uint8_t* codes, std::span<const std::int32_t> rows, const double* entry,
              double* histogram) {
  constexpr int width = n_values + counts;
  for (std::size_t k = 0; k < rows.size(); ++k, entry += n_values) {
    if (k + kAhead < rows.size()) __builtin_prefetch(codes + rows[k + kAhead] * Bins::kTile);
    std::uint64_t word;  // all codes of the row: a store through `histogram` cannot change it
    __builtin_memcpy(&word, codes + rows[k] * Bins::kTile, sizeof(word));
    if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
    double values[width];
    for (int j = 0; j < n_values; ++j) values[j] = entry[j];
    if constexpr (counts) values[n_values] = 1.0;
    for (int f = 0; f < n; ++f, word >>= 8) {
      double* const sums = histogram + (f * (kMostBins + 1) + (word & 255)) * width;
      for (int j = 0; j < width; ++j) sums[j] += values[j];
    }
  }
}

template <int n_values, bool counts>
void add_tile(std::int64_t n, const std::uint8_t* codes, std::span<const std::int32_t> rows,
              const double* entries, double* histogram) {
  // The number of features is a constant there, so that the loop over them is unrolled.
  [&]<std::size_t... m>(std::index_sequence<m...>) {
    (void)((n == m + 1 &&
            (add_rows<n_values, counts, m + 1>(codes, rows, entries, histogram), true)) ||
           ...);
  }(std::make_index_sequence<Bins::kTile>{});
}

// Adds wide entries, feature by feature, so that the histogram of one stays in cache.
template <bool counts>
void add_features(std::int64_t n, std::int64_t n_values, const std::uint8_t* codes,
                  std::span<const std::int32_t> rows, const double* entries, double* histogram) {
  const std::int64_t width = n_values + counts;
  for (std::int64_t f = 0; f < n; ++f, histogram += (kMostBins + 1) * width) {
    const double* entry = entries;
    for (const auto row : rows) {
      double* const sums = histogram + codes[row * Bins::kTile + f] * width;
      for (std::int64_t j = 0; j < n_values; ++j) sums[j] += entry[j];
      if constexpr (counts) sums[n_values] += 1.0;
      entry += n_values;
    }
  }
}

}  // namespace

BinnedTree BinnedRounds::grow(const MutableMatrix& values, std::span<const double> row_weight,
                              std::span<const double> row_errors, const Rules& rules,
                              std::uint64_t seed, double scale, Watch& watch) {
  watch_ = &watch;
  rules_ = &rules;
  errors_ = row_errors;
  Pace pace(watch);
  begin(values, row_weight, pace);
  push(add_node(0, static_cast<std::int32_t>(rows_.size()), nullptr, seed));
  for (std::int32_t n_leaves = 1; !frontier_.empty() && n_leaves < rules.max_leaf_nodes;) {
    NodeState& node = pop();
    const bool known = rules.order == GrowthOrder::gain;
    if (!known && !choose(node)) continue;
    split(node, ++n_leaves == rules.max_leaf_nodes);
    pace.advance(4 * (node.end - node.begin));
  }
  BinnedTree result;
  finish(values, scale, result, pace);
  return result;
}

void BinnedRounds::begin(const MutableMatrix& values, std::span<const double> row_weight,
                         Pace& pace) {
  if (!std::ranges::equal(row_weight, row_weight_)) {
    row_weight_.assign(row_weight.begin(), row_weight.end());
    rowset_ = rowset_of(row_weight);
  }
  largest_error_ = errors_.empty() ? 0.0 : *std::ranges::max_element(errors_);
  const std::size_t n = rowset_.rows.size();
  plain_ = std::ranges::all_of(rowset_.rows, [&](auto i) { return row_weight[i] == 1.0; });
  rank_ = values.n_cols;
  width_ = rank_ + (plain_ ? 1 : 2);
  n_values_ = plain_ ? rank_ : width_;
  rows_ = rowset_.rows;
  entries_.resize(n * static_cast<std::size_t>(n_values_));
  double* out = entries_.data();
  for (const auto i : rows_) {
    const double* const row = values.row(i);
    if (plain_) {
      out = std::copy_n(row, rank_, out);
      continue;
    }
    for (std::int64_t j = 0; j < rank_; ++j) *out++ = rowset_.weight[i] * row[j];
    *out++ = rowset_.weight[i];
    *out++ = rowset_.count[i];
  }
  pace.advance(static_cast<std::int64_t>(n) * width_);
  right_rows_.resize(n);
  right_entries_.resize(entries_.size());
  if (order_.size() != static_cast<std::size_t>(bins_.n_features())) {
    order_ = FeatureOrder(bins_.n_features());
  }
  gains_.resize(order_.size());
  frontier_.clear();
  nodes_.clear();
  n_in_use_ = 0;
  tree_ = {};
}

BinnedRounds::NodeState& BinnedRounds::add_node(std::int32_t begin, std::int32_t end,
                                                NodeState* parent, std::uint64_t seed) {
  const auto id = static_cast<std::int32_t>(tree_.nodes.size());
  NodeState& node = nodes_.emplace_back();
  static_cast<Node&>(node) = {id, begin, end, parent == nullptr ? 0 : parent->depth + 1, seed};
  node.parent = parent;
  measure(node);
  tree_.nodes.push_back(
      {.begin = begin, .end = end, .weight = node.weight, .variance = node.variance});
  return node;
}

// Sums up the entries of a node, and sets its variance and noise.
void BinnedRounds::measure(NodeState& node) const {
  const std::int64_t n = node.end - node.begin;
  const double* const first = entry(node.begin);
  node.sum.assign(static_cast<std::size_t>(rank_), 0.0);
  if (plain_ && rank_ == 1) {  // in four parts that do not wait for each other
    double sums[4]{}, squares[4]{};
    std::int64_t k = 0;
    for (; k + 4 <= n; k += 4) {
      for (int part = 0; part < 4; ++part) {
        const double x = first[k + part];
        sums[part] += x;
        squares[part] += x * x;
      }
    }
    for (; k < n; ++k) {
      sums[0] += first[k];
      squares[0] += first[k] * first[k];
    }
    node.sum[0] = sums[0] + sums[1] + (sums[2] + sums[3]);
    node.scale = squares[0] + squares[1] + (squares[2] + squares[3]);
    node.weight = node.count = static_cast<double>(n);
    node.lightest = 1.0;
  } else {
    node.lightest = std::numeric_limits<double>::infinity();
    const double* at = first;
    for (std::int64_t k = 0; k < n; ++k, at += n_values_) {
      double square = 0.0;
      for (std::int64_t j = 0; j < rank_; ++j) {
        node.sum[j] += at[j];
        square += at[j] * at[j];
      }
      const double weight = weight_of(at);
      node.scale += square / weight;
      node.weight += weight;
      node.count += plain_ ? 1.0 : at[rank_ + 1];
      node.lightest = std::min(node.lightest, weight);
    }
  }
  if (n < 2) return;  // a single row has no variance
  double norm = 0.0;
  for (const double sum : node.sum) norm += sum * sum;
  node.variance = node.scale - norm / node.weight;
  if (node.variance <= 1e-6 * node.scale && node.scale > 0.0) {
    // Most digits are lost by cancellation: sum the squares around the mean instead.
    node.variance = 0.0;
    const double* at = first;
    for (std::int64_t k = 0; k < n; ++k, at += n_values_) {
      const double weight = weight_of(at);
      double square = 0.0;
      for (std::int64_t j = 0; j < rank_; ++j) {
        const double difference = at[j] - weight * node.sum[j] / node.weight;
        square += difference * difference;
      }
      node.variance += square / weight;
    }
  }
  if (node.variance <= node.rounding()) node.variance = 0.0;  // equal outputs
  node.noise = std::max(kNoise * node.variance,
                        kRounding * std::sqrt(node.variance) * std::sqrt(node.scale));
  if (node.variance < node.noise + node.weight * largest_error_) {
    double error = 0.0;
    for (const auto i : rows_of(node)) error += rowset_.weight[i] * errors_[i];
    node.noise += error;
    if (error > 0.0 && node.variance < node.noise) node.variance = 0.0;
  }
}

bool BinnedRounds::may_split(const NodeState& node) const {
  return node.end - node.begin >= 2 && node.depth < rules_->max_depth &&
         !fewer(node.count, rules_->min_samples_split) &&
         !fewer(node.count, 2 * rules_->min_samples_leaf) &&
         (!rules_->stop_when_pure || node.variance > 0.0);
}

bool BinnedRounds::later(const NodeState* a, const NodeState* b) {
  return a->priority != b->priority ? a->priority < b->priority : a->id > b->id;
}

void BinnedRounds::push(NodeState& node) {
  const bool by_gain = rules_->order == GrowthOrder::gain;
  if (!may_split(node) || (by_gain && !choose(node))) return;
  node.priority = coarse(by_gain ? node.choice.gain : node.variance);
  frontier_.push_back(&node);
  std::ranges::push_heap(frontier_, later);
}

BinnedRounds::NodeState& BinnedRounds::pop() {
  std::ranges::pop_heap(frontier_, later);
  NodeState& node = *frontier_.back();
  frontier_.pop_back();
  return node;
}

// Finds the best split of a node, as Splitter::search does; returns whether the node is split.
bool BinnedRounds::choose(NodeState& node) {
  make_histogram(node);
  const bool pair = node.end - node.begin == 2;  // all splits of two rows are equal
  const auto most = std::min(pair ? std::size_t{1} : static_cast<std::size_t>(rules_->max_features),
                             order_.size());
  Rng rng(node.seed);
  if (!pair && most == order_.size()) {
    decide(node, order_.natural(), &rng);
  } else {
    if (!pair) {
      order_.draw(rng, most);
      decide(node, order_.drawn(), nullptr);
    }
    while (node.choice.feature < 0 && order_.n_drawn() < order_.size()) {
      const std::int32_t feature = order_.draw(rng);
      const double largest = pair ? 0.0 : best(node, feature);
      if (largest >= 0.0) take(node, feature, least_equal_of(largest, node.noise));
    }
  }
  order_.put_back();
  const double gain = node.choice.gain * (1.0 + kTie) + node.noise;
  const bool found =
      node.choice.feature >= 0 && gain >= rules_->min_impurity_decrease * nodes_.front().weight;
  if (!found) give_back(node);
  return found;
}

// Takes the best split of some features: among equals the first, or a random one.
void BinnedRounds::decide(NodeState& node, std::span<const std::int32_t> features, Rng* rng) {
  screen(node, features);
  double largest = kNoGain;
  for (const auto feature : features) largest = std::max(largest, gains_[feature]);
  if (largest < 0.0) return;
  const double least = least_equal_of(largest, node.noise);
  const auto is_best = [&](std::int32_t feature) { return gains_[feature] >= least; };
  std::int32_t feature = *std::ranges::find_if(features, is_best);
  if (rng != nullptr && std::ranges::count_if(features, is_best) > 1) {
    do {
      feature = order_.draw(*rng);
    } while (!is_best(feature));
  }
  take(node, feature, least);
}

void BinnedRounds::screen(const NodeState& node, std::span<const std::int32_t> features) {
  const auto n = static_cast<std::int64_t>(features.size());
  const int n_threads = n * (kMostBins + 1) * width_ >= kManySums ? n_threads_ : 1;
  parallel_for(n, n_threads, *watch_, [&](std::int64_t k, Pace& pace) {
    gains_[features[k]] = best(node, features[k]);
    pace.advance(kMostBins * width_);
  });
}

// Calls f(choice, left weight) for each split of a feature in a fixed order, until it returns true.
template <class F>
void BinnedRounds::visit(const NodeState& node, std::int32_t feature, F&& f) const {
  const Gain gain{node.weight, node.count, at_least(rules_->min_samples_leaf)};
  const std::int32_t n_bins = bins_.n_bins(feature);
  const double* const first = bin(node.histogram, feature, 0);
  const double* const missing = first + n_bins * width_;
  const bool any_missing = missing[width_ - 1] > kLeastCount;
  double scalar[3];
  std::vector<double> wide(width_ > 3 ? static_cast<std::size_t>(width_) : 0);
  double* const prefix = width_ > 3 ? wide.data() : scalar;
  for (int side = 0; side <= static_cast<int>(any_missing); ++side) {
    const bool missing_left = side == 1;
    for (std::int64_t j = 0; j < width_; ++j) prefix[j] = missing_left ? missing[j] : 0.0;
    const auto cut = [&](std::int32_t lower, std::int32_t upper) {
      const double left_weight = prefix[rank_], part = left_weight / node.weight;
      double norm = 0.0;
      for (std::int64_t j = 0; j < rank_; ++j) {
        const double sum = prefix[j] - part * node.sum[j];
        norm += sum * sum;
      }
      // Rows that are too light to change the weight of the node make no side.
      const bool heavy = left_weight > 0.0 && left_weight < node.weight;
      const double reduction = heavy ? gain(norm, left_weight, prefix[width_ - 1]) : kNoGain;
      return f(Choice{feature, lower, upper, missing_left, reduction}, left_weight);
    };
    std::int32_t last = -1;
    for (std::int32_t b = 0; b < n_bins; ++b) {
      const double* const sums = first + b * width_;
      if (!(sums[width_ - 1] > kLeastCount)) continue;
      if (last >= 0 && cut(last, b)) return;
      for (std::int64_t j = 0; j < width_; ++j) prefix[j] += sums[j];
      last = b;
    }
    if (any_missing && !missing_left && last >= 0 && cut(last, n_bins)) return;
  }
}

double BinnedRounds::best(const NodeState& node, std::int32_t feature) const {
  double most = kNoGain;
  visit(node, feature, [&](const Choice& choice, double) {
    most = std::max(most, choice.gain);
    return false;
  });
  return most;
}

// Takes the first split of a feature that has at least this gain.
void BinnedRounds::take(NodeState& node, std::int32_t feature, double least) const {
  const bool any_missing =
      bin(node.histogram, feature, bins_.n_bins(feature))[width_ - 1] > kLeastCount;
  visit(node, feature, [&](const Choice& choice, double left_weight) {
    if (choice.gain < 0.0 || choice.gain < least) return false;
    node.choice = choice;
    if (!any_missing) {  // they will go to the heavier side
      node.choice.missing_left = left_weight - (node.weight - left_weight) > kTie * node.weight;
    }
    return true;
  });
}

void BinnedRounds::split(NodeState& node, bool is_last) {
  const Choice& choice = node.choice;
  const Bins::Cut cut = bins_.cut_between(choice.feature, choice.lower, choice.upper);
  node.last = cut.last;
  const std::int32_t middle = partition(node, cut);
  TreeNode& grown = tree_.nodes[node.id];
  grown.feature = choice.feature;
  grown.threshold = cut.threshold;
  grown.missing_left = choice.missing_left;
  grown.left = static_cast<std::int32_t>(tree_.nodes.size());
  node.left = &add_node(node.begin, middle, &node, derive(node.seed, 1));
  node.right = &add_node(middle, node.end, &node, derive(node.seed, 2));
  if (is_last || n_in_use_ * node.histogram.size() * sizeof(double) > kMostBytes) give_back(node);
  if (is_last) return;
  push(*node.right);
  push(*node.left);
}

// Moves the rows that go left before those that go right, keeping the order within each side.
std::int32_t BinnedRounds::partition(const NodeState& node, const Bins::Cut& cut) {
  const std::int32_t feature = node.choice.feature, missing = bins_.n_bins(feature);
  const std::uint8_t* const codes = bins_.tile(feature / Bins::kTile) + feature % Bins::kTile;
  const std::int32_t last = cut.last;
  const bool missing_left = node.choice.missing_left;
  std::int32_t *const rows = rows_.data(), *const right_rows = right_rows_.data();
  double *const entries = entries_.data(), *const right_entries = right_entries_.data();
  std::int32_t n_left = node.begin, n_right = 0;
  const auto move = [&](auto width) {
    for (std::int32_t k = node.begin, end = node.end; k < end; ++k) {
      const std::int32_t row = rows[k], code = codes[row * Bins::kTile];
      const bool left = (code <= last) | ((code == missing) & missing_left);
      // Without branches: each row is written to both sides, and kept on one.
      rows[n_left] = right_rows[n_right] = row;
      for (std::int64_t j = 0; j < width; ++j) {
        const double value = entries[k * width + j];
        entries[n_left * width + j] = right_entries[n_right * width + j] = value;
      }
      n_left += left;
      n_right += !left;
    }
  };
  if (n_values_ == 1) {
    move(std::integral_constant<std::int64_t, 1>{});
  } else {
    move(n_values_);
  }
  std::copy_n(right_rows_.begin(), n_right, rows_.begin() + n_left);
  std::copy_n(right_entries_.begin(), n_right * n_values_, entries_.begin() + n_left * n_values_);
  return n_left;
}

void BinnedRounds::make_histogram(NodeState& node) {
  if (node.parent != nullptr && !node.parent->histogram.empty()) divide_histogram(*node.parent);
  if (node.histogram.empty()) fill(node);
  node.noise = std::max(node.noise, kRounding * std::sqrt(node.variance) * std::sqrt(node.source));
}

// Makes the histogram of the smaller child, and makes that of the parent the larger one's.
void BinnedRounds::divide_histogram(NodeState& parent) {
  const bool left_larger =
      parent.left->end - parent.left->begin > parent.right->end - parent.right->begin;
  NodeState& larger = left_larger ? *parent.left : *parent.right;
  NodeState& smaller = left_larger ? *parent.right : *parent.left;
  const bool derived = may_split(larger) && larger.scale >= kMostLoss * parent.source &&
                       larger.lightest >= kLeastWeight * nodes_.front().weight;
  if (!derived) return give_back(parent);
  fill(smaller);
  for (std::int32_t feature = 0; feature < bins_.n_features(); ++feature) {
    double* const sums = bin(parent.histogram, feature, 0);
    const double* const part = bin(smaller.histogram, feature, 0);
    const std::int64_t n = (bins_.n_bins(feature) + 1) * width_;
    for (std::int64_t k = 0; k < n; ++k) sums[k] -= part[k];
  }
  larger.histogram.swap(parent.histogram);
  larger.source = parent.source;
  if (!may_split(smaller)) give_back(smaller);
}

// Sums up the entries of a node in all bins: for each bin in the order of the rows.
void BinnedRounds::fill(NodeState& node) {
  take_buffer(node);
  node.source = node.scale;
  const std::span<const std::int32_t> rows = rows_of(node);
  const double* const entries = entry(node.begin);
  const auto n_rows = static_cast<std::int64_t>(rows.size());
  const int n_threads = n_rows * bins_.n_features() * width_ >= kManySums ? n_threads_ : 1;
  parallel_for(bins_.n_tiles(), n_threads, *watch_, [&](std::int64_t tile, Pace& pace) {
    const std::int64_t first = tile * Bins::kTile;
    const std::int64_t n = std::min(Bins::kTile, bins_.n_features() - first);
    for (std::int64_t f = first; f < first + n; ++f) {
      const auto feature = static_cast<std::int32_t>(f);
      std::fill_n(bin(node.histogram, feature, 0), (bins_.n_bins(feature) + 1) * width_, 0.0);
    }
    double* const histogram = bin(node.histogram, static_cast<std::int32_t>(first), 0);
    // Some rows at a time, so that a signal is heard soon.
    constexpr std::int64_t kBlock = 1 << 14;
    for (std::int64_t begin = 0; begin < n_rows; begin += kBlock) {
      const std::int64_t size = std::min(kBlock, n_rows - begin);
      const auto some = rows.subspan(begin, size);
      const double* const from = entries + begin * n_values_;
      if (rank_ == 1) {
        (plain_ ? add_tile<1, true> : add_tile<3, false>)(n, bins_.tile(tile), some, from,
                                                          histogram);
      } else {
        (plain_ ? add_features<true> : add_features<false>)(n, n_values_, bins_.tile(tile), some,
                                                            from, histogram);
      }
      pace.advance(size * n * width_);
    }
  });
}

void BinnedRounds::take_buffer(NodeState& node) {
  ++n_in_use_;
  if (!buffers_.empty()) {
    node.histogram.swap(buffers_.back());
    buffers_.pop_back();
  }
  node.histogram.resize(static_cast<std::size_t>(bins_.n_features() * (kMostBins + 1) * width_));
}

void BinnedRounds::give_back(NodeState& node) {
  if (node.histogram.empty()) return;
  --n_in_use_;
  buffers_.emplace_back();
  buffers_.back().swap(node.histogram);
}

// The leaf that a row reaches, by its codes.
std::int32_t BinnedRounds::reach(std::int64_t row) const {
  const NodeState* node = &nodes_.front();
  while (node->left != nullptr) {
    const std::int32_t feature = node->choice.feature, code = bins_.code(row, feature);
    const bool left =
        code <= node->last || (code == bins_.n_bins(feature) && node->choice.missing_left);
    node = left ? node->left : node->right;
  }
  return node->leaf;
}

// The same for a row of weight zero, by its values.
std::int32_t BinnedRounds::reach_unused(std::size_t k) const {
  const NodeState* node = &nodes_.front();
  while (node->left != nullptr) {
    const Test test{.threshold = tree_.nodes[node->id].threshold,
                    .missing_left = node->choice.missing_left};
    node = test.left(bins_.unused_value(k, node->choice.feature)) ? node->left : node->right;
  }
  return node->leaf;
}

void BinnedRounds::finish(const MutableMatrix& values, double scale, BinnedTree& result,
                          Pace& pace) {
  std::vector<NodeState*> leaves;
  for (NodeState& node : nodes_) {
    give_back(node);
    if (node.left == nullptr) leaves.push_back(&node);
  }
  std::ranges::sort(leaves, {}, &NodeState::begin);
  result.places.assign(static_cast<std::size_t>(values.n_rows), -1);
  result.means.reserve(leaves.size() * static_cast<std::size_t>(rank_));
  for (std::size_t number = 0; number < leaves.size(); ++number) {
    NodeState& leaf = *leaves[number];
    leaf.leaf = static_cast<std::int32_t>(number);
    for (const double sum : leaf.sum) result.means.push_back(scale * (sum / leaf.weight));
    for (const auto row : rows_of(leaf)) result.places[row] = leaf.leaf;
  }
  const std::span<const std::int32_t> unused = bins_.unused();
  for (std::size_t k = 0; k < unused.size(); ++k) result.places[unused[k]] = reach_unused(k);
  for (std::int64_t i = 0; i < values.n_rows; ++i) {
    if (result.places[i] < 0) result.places[i] = reach(i);
    const double* const mean = result.means.data() + result.places[i] * rank_;
    double* const row = values.row(i);
    for (std::int64_t j = 0; j < rank_; ++j) row[j] -= mean[j];
    pace.advance(rank_);
  }
  tree_.members = rows_;
  scale_sums(tree_, rowset_.exponent);
  result.tree = std::move(tree_);
}

}  // namespace okforest
