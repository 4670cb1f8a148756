// The searches of the Gram form, in float32.
#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/gram.hpp"

namespace okforest {

namespace {

// Number of lists swept together: each row of the matrix is read once for all of them.
constexpr std::size_t kListsTogether = 4;

// For this number of features or more, a sum over k entries of the matrix, one by one, takes as
// long as one in float32 over this many times k entries of whole rows; and what a sum over a row
// takes besides, in entries.
constexpr std::size_t kManyFeatures = 12;
constexpr std::size_t kEntriesOfRows = 6;
constexpr std::size_t kOverhead = 128;

// Half a unit in the last place of float32, relative.
constexpr double kUnit = 0x1.0p-24;

// Rounding errors of a sum in float32: of each entry, its weights, their product, and the
// additions.
double search_error(double n_additions) { return (n_additions + 12.0) * kUnit; }

}  // namespace

// Whether sums of entries in float32, with this error, tell which splits may be the best.
bool GramScorer::can_search(const Node& node, const Frame& frame, double error) const {
  return block(frame).search.data != nullptr && error <= 1e-3 * node.variance &&
         fits_floats(frame.scale, node.lightest);
}

Precision GramScorer::search_sides(const Node& node, Rows rows, const Frame& frame,
                                   std::span<const Side> sides, double* norms) {
  const Block& of_node = block(frame);
  // The rows of a panel are added up, then panels. The smaller side by weight may have most rows.
  const double n_additions = static_cast<double>(
      std::min<std::int64_t>(rows.size(), GramPanels::width) + of_node.search.n_panels());
  const double error = search_error(n_additions) * frame.scale;
  if (!can_search(node, frame, error)) {
    return ScorerDefaults::search_sides(node, rows, frame, sides, norms);
  }
  assert(sides.size() <= kMaxSides);
  list_places(of_node, sides);
  if (!plain()) {
    float_weight_.resize(static_cast<std::size_t>(of_node.n));
    for (const auto i : rows) float_weight_[of_node.home[i]] = static_cast<float>(weight_[i]);
  }
  kernels().pair_sums(of_node.search, panel_rows_, plain() ? nullptr : float_weight_.data(), norms);
  for (std::size_t s = 0; s < sides.size(); ++s) {
    const Rows side = sides[s].rows;
    const std::int32_t* const places = panel_rows_[s].rows;
    const auto entry = [&](std::size_t k) { return weight_of(side[k]) * frame.reach[places[k]]; };
    norms[s] = centred(norms[s], sides[s].weight, gathered_sum(entry, side.size()), frame);
  }
  return {.flat = error};
}

// The places of the rows of some sides, and where those of each panel start.
void GramScorer::list_places(const Block& block, std::span<const Side> sides) {
  const auto n_panels = static_cast<std::size_t>(block.search.n_panels());
  std::size_t n_listed = 0;
  for (const Side& side : sides) n_listed += side.rows.size();
  if (side_places_.size() < n_listed) side_places_.resize(n_listed);
  side_starts_.resize(sides.size() * (n_panels + 1));
  panel_rows_.clear();
  std::int32_t *place = side_places_.data(), *start = side_starts_.data();
  for (const Side& side : sides) {
    const auto n = static_cast<std::int32_t>(side.rows.size());
    panel_rows_.push_back({place, start});
    for (std::int32_t k = 0; k < n; ++k) place[k] = block.home[side.rows[k]];
    assert(std::is_sorted(place, place + n));
    std::int32_t k = 0;
    for (std::size_t p = 0; p < n_panels; ++p) {
      *start++ = k;
      const auto end = static_cast<std::int32_t>((p + 1) * GramPanels::width);
      while (k < n && place[k] < end) ++k;
    }
    *start++ = n;
    place += n;
  }
}

Precision GramScorer::prefix_norms(const Node& node, Rows rows, const Frame& frame,
                                   std::span<const Prefixes> lists, bool exact, double* norms) {
  const Block& of_node = block(frame);
  const double error = search_error(static_cast<double>(rows.size()) / 8) * frame.scale;
  const bool in_floats =
      !exact && lists.size() >= 2 * kManyFeatures && can_search(node, frame, error);
  std::size_t n_listed = 0;
  for (const Prefixes& list : lists) n_listed += list.rows.size();
  if (before_.size() < n_listed) before_.resize(n_listed);
  double* before = before_.data();
  longer_.clear();
  for (std::size_t g = 0; g < lists.size(); g += 2) {
    const Rows left = lists[g].rows, right = lists[g + 1].rows;
    const std::size_t n_both = left.size() + right.size();
    const std::size_t n_pairs = (left.size() * left.size() + right.size() * right.size()) / 2;
    if (in_floats && kEntriesOfRows * n_pairs >= n_both * (rows.size() + kOverhead)) {
      longer_.push_back({left, right, before});
      before += n_both;
      continue;
    }
    for (const Rows list : {left, right}) {
      const Places places = places_of(of_node, list);
      for (std::size_t k = 0; k < list.size(); ++k) {
        *before++ = places.sum(of_node.row(list[k]), k);
      }
    }
  }
  if (!longer_.empty()) sums_by_row(of_node, rows);

  for (const auto i : rows) {
    const double w = weight_of(i);
    terms_[i] = {w, w * w * of_node.diagonal(i), w * frame.reach[of_node.home[i]]};
  }
  before = before_.data();
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
  return {.flat = longer_.empty() ? 0.0 : error};
}

// For each row of each longer list, the sum over the rows before it: whole rows of the matrix are
// read, and entries summed that come before the row in the list. A row's rank is large if it comes
// early; it is positive in left lists, negative in right ones, and zero outside of both.
void GramScorer::sums_by_row(const Block& block, Rows rows) {
  const std::size_t n = rows.size();
  const std::size_t width = (n + 15) / 16 * 16;
  const std::size_t stride = (width / 16 | 1) * 16;  // odd in cache lines: lists use all cache sets
  const Rows places = places_of(block, rows).at;
  std::vector<std::int64_t> offset(n);  // of columns, in the first row of their panel
  std::vector<float> weight(n);
  for (std::size_t k = 0; k < n; ++k) {
    offset[k] = &block.search.panel(places[k] / GramPanels::width)[places[k] % GramPanels::width] -
                block.search.data;
    weight[k] = static_cast<float>(weight_of(rows[k]));
    number_[rows[k]] = static_cast<std::int32_t>(k);
  }
  rank_.assign(longer_.size() * stride, 0.0f);
  for (std::size_t g = 0; g < longer_.size(); ++g) {
    float* const rank = &rank_[g * stride];
    float most = static_cast<float>(n);
    for (const auto i : longer_[g].left) rank[number_[i]] = most--;
    most = static_cast<float>(n);
    for (const auto i : longer_[g].right) rank[number_[i]] = -most--;
  }
  line_.assign(width, 0.0f);
  std::vector<std::int32_t> queue[2] = {std::vector<std::int32_t>(longer_.size() + kListsTogether),
                                        std::vector<std::int32_t>(longer_.size() + kListsTogether)};
  for (std::size_t t = 0; t < n; ++t) {
    const float* const row = block.search.data + places[t] * GramPanels::width;
    for (std::size_t k = 0; k < n; ++k) line_[k] = row[offset[k]] * weight[k];
    // The hardware does not foresee the parts of the next row, in other panels.
    for (std::size_t k = 0; t + 1 < n && k < n; k += 16) {
      __builtin_prefetch(block.search.data + places[t + 1] * GramPanels::width + offset[k]);
    }
    // Without branches: the lists that the row is in, from the left and from the right.
    std::size_t n_queued[2] = {};
    for (std::size_t g = 0; g < longer_.size(); ++g) {
      const float own = rank_[g * stride + t];
      queue[own < 0.0f][n_queued[own < 0.0f]] = static_cast<std::int32_t>(g);
      n_queued[own < 0.0f] += own != 0.0f;
    }
    for (const bool right : {false, true}) {
      for (std::size_t q = 0; q < n_queued[right]; q += kListsTogether) {
        const float* rank[kListsTogether];
        double sums[kListsTogether];
        const std::size_t n_here = std::min(kListsTogether, n_queued[right] - q);
        for (std::size_t a = 0; a < kListsTogether; ++a) {
          rank[a] =
              &rank_[static_cast<std::size_t>(queue[right][q + std::min(a, n_here - 1)]) * stride];
        }
        kernels().sums_before[right](line_.data(), rank, t, width, sums);
        for (std::size_t a = 0; a < n_here; ++a) {
          const Longer& pair = longer_[static_cast<std::size_t>(queue[right][q + a])];
          const auto place = n - static_cast<std::size_t>(std::abs(rank[a][t]));
          pair.before[right ? pair.left.size() + place : place] = sums[a];
        }
      }
    }
  }
}

}  // namespace okforest
