// The searches of the Gram form, in float32.
#include <algorithm>
#include <cassert>
#include <limits>

#include "core/gathered_sum.hpp"
#include "core/gram.hpp"

namespace okforest {

namespace {

// Number of lists swept together: each row of the matrix is read once for all of them.
constexpr std::size_t kTile = 4;

// For a list of fewer than 1 / kScarce of the node's rows, single entries of the matrix are
// gathered. For a longer list, reading whole rows is faster.
constexpr std::size_t kScarce = 3;

// In nodes of at most this many rows, prefixes are summed in float64, entry by entry.
constexpr std::size_t kFew = 8;

// Half a unit in the last place of float32, relative.
constexpr double kUnit = 0x1.0p-24;

// Rounding errors of a sum in float32: of each entry, its weights, their product, and the
// additions.
double search_error(double n_additions) { return (n_additions + 12.0) * kUnit; }

}  // namespace

Precision GramScorer::search_sides(const Node& node, Rows rows, const Frame& frame,
                                   std::span<const Side> sides, double* norms) {
  const Block& of_node = block(frame);
  // The rows of a panel are added up, then panels. The smaller side by weight may have most rows.
  const double n_additions = static_cast<double>(
      std::min<std::int64_t>(rows.size(), GramPanels::width) + of_node.search.n_panels());
  const double error = search_error(n_additions) * frame.scale;
  if (of_node.search.data == nullptr || error > 1e-3 * node.variance ||
      !fits_floats(frame.scale, node.lightest)) {
    return ScorerDefaults::search_sides(node, rows, frame, sides, norms);
  }
  assert(sides.size() <= kCutWidth);
  list_places(of_node, sides);
  if (!plain_) {
    float_weight_.resize(static_cast<std::size_t>(of_node.n));
    for (const auto i : rows) float_weight_[of_node.home[i]] = static_cast<float>(weight_[i]);
  }
  kernels().pair_sums(of_node.search, panel_rows_, plain_ ? nullptr : float_weight_.data(), norms);
  for (std::size_t s = 0; s < sides.size(); ++s) {
    const Rows side = sides[s].rows;
    const std::int32_t* const places = panel_rows_[s].rows;
    const auto entry = [&](std::size_t k) { return weight_of(side[k]) * frame.reach[places[k]]; };
    norms[s] = centred(norms[s], sides[s].weight, gathered_sum(entry, nullptr, side.size()), frame);
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

Precision GramScorer::search_prefixes(const Node& node, Rows rows, const Frame& frame,
                                      std::span<const Prefixes> lists, double* norms) {
  const Block& of_node = block(frame);
  const double error = search_error(static_cast<double>(rows.size()) / 8) * frame.scale;
  if (rows.size() <= kFew || of_node.search.data == nullptr || error > 1e-3 * node.variance ||
      !fits_floats(frame.scale, node.lightest)) {
    prefix_norms(node, rows, frame, lists, norms);
    return {};
  }
  std::size_t n_listed = 0;
  for (const Prefixes& list : lists) n_listed += list.rows.size();
  if (before_.size() < n_listed) before_.resize(n_listed);
  const double* const weights = plain_ ? nullptr : place_weight_.data();
  double* before = before_.data();
  longer_.clear();
  for (const Prefixes& list : lists) {
    if (kScarce * list.rows.size() >= rows.size()) {
      longer_.push_back({list.rows, before});
    } else {
      find_places(of_node, list.rows);
      for (std::size_t k = 0; k < list.rows.size(); ++k) {
        const double* const row = of_node.exact + place_[k] * of_node.n;
        before[k] = gathered_sum([&](std::size_t l) { return row[place_[l]]; }, weights, k);
      }
    }
    before += list.rows.size();
  }
  if (!longer_.empty()) sums_by_row(of_node, rows);
  finish_prefixes(of_node, frame, lists, norms);
  return {.flat = error};
}

// For each row of each longer list, the sum over the rows before it: whole rows of the matrix are
// read, and entries summed whose rank in a list is below that of the row.
void GramScorer::sums_by_row(const Block& block, Rows rows) {
  constexpr float never = std::numeric_limits<float>::infinity();
  const std::size_t n = rows.size();
  const std::size_t width = (n + 15) / 16 * 16;
  find_places(block, rows);
  std::vector<std::int64_t> offset(n);  // of columns, in the first row of their panel
  for (std::size_t k = 0; k < n; ++k) {
    offset[k] = &block.search.panel(place_[k] / GramPanels::width)[place_[k] % GramPanels::width] -
                block.search.data;
    number_[rows[k]] = static_cast<std::int32_t>(k);
  }
  rank_.assign(longer_.size() * width, never);
  for (std::size_t g = 0; g < longer_.size(); ++g) {
    const Rows list = longer_[g].rows;
    for (std::size_t k = 0; k < list.size(); ++k) {
      rank_[g * width + static_cast<std::size_t>(number_[list[k]])] = static_cast<float>(k);
    }
  }
  line_.assign(width, 0.0f);
  const float* rank[kTile];
  float limit[kTile];
  double sums[kTile];
  double* out[kTile];
  std::size_t n_filled = 0;
  const auto sum_tile = [&] {
    for (std::size_t a = n_filled; a < kTile; ++a) rank[a] = rank[0], limit[a] = -1.0f;
    kernels().sums_below(line_.data(), rank, width, limit, sums);
    for (std::size_t a = 0; a < n_filled; ++a) *out[a] = sums[a];
    n_filled = 0;
  };
  for (std::size_t t = 0; t < n; ++t) {
    const float* const row = block.search.data + place_[t] * GramPanels::width;
    for (std::size_t k = 0; k < n; ++k) line_[k] = row[offset[k]];
    if (!plain_) {
      for (std::size_t k = 0; k < n; ++k) line_[k] *= static_cast<float>(place_weight_[k]);
    }
    for (std::size_t g = 0; g < longer_.size(); ++g) {
      const float own = rank_[g * width + t];
      if (own == never) continue;
      rank[n_filled] = &rank_[g * width];
      limit[n_filled] = own;
      out[n_filled++] = longer_[g].before + static_cast<std::size_t>(own);
      if (n_filled == kTile) sum_tile();
    }
    if (n_filled > 0) sum_tile();
  }
}

}  // namespace okforest
