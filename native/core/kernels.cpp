// Compiled once per instruction set, with OKFOREST_LEVEL as the namespace. Nothing here may call
// functions of the standard library that are not inlined: the linker keeps one version of them,
// which may need instructions that the machine does not have.
#include "core/kernels.hpp"

#include "core/cut_kernels.hpp"
#include "core/simd.hpp"

namespace okforest::OKFOREST_LEVEL {

namespace {

// Calls f(number of packs, at most four, and a flag, both as constants).
template <class F>
OKFOREST_INLINE void with_packs(std::int64_t n, bool flag, F&& f) {
  with_constant(flag, [&](auto plain) OKFOREST_LAMBDA {
    if (n == 1) return f(std::integral_constant<int, 1>{}, plain);
    if (n == 2) return f(std::integral_constant<int, 2>{}, plain);
    if (n == 3) return f(std::integral_constant<int, 3>{}, plain);
    return f(std::integral_constant<int, 4>{}, plain);
  });
}

// The sum of some rows of a group, each times weight(its place in the list) unless `plain`. With
// few packs, two running sums hide the latency of additions.
template <bool plain, int packs, int stride = packs * 16, class Weight>
OKFOREST_INLINE void sum_group(const float* group, Rows rows, const Weight& weight,
                               Floats sum[packs]) {
  constexpr int kSums = packs <= 2 ? 2 : 1;
  Floats more[packs];
  for (int c = 0; c < packs; ++c) sum[c] = more[c] = fill<float, 16>(0.0f);
  const auto add = [&](std::size_t k, Floats* to) OKFOREST_LAMBDA {
    const float* const row = group + static_cast<std::int64_t>(rows[k]) * stride;
    for (int c = 0; c < packs; ++c) {
      auto x = load<float, 16>(row + 16 * c);
      if constexpr (!plain) x = x * fill<float, 16>(weight(k));
      to[c] = to[c] + x;
    }
  };
  std::size_t k = 0;
  for (; k + kSums <= rows.size(); k += kSums) {
    add(k, sum);
    if constexpr (kSums == 2) add(k + 1, more);
  }
  if (k < rows.size()) add(k, sum);
  if constexpr (kSums == 2) {
    for (int c = 0; c < packs; ++c) sum[c] = sum[c] + more[c];
  }
}

// The node is read in blocks of rows of a group of columns, which stay in cache while all sides are
// summed. A node of a single block is in float32 throughout.
template <bool plain, int packs>
OKFOREST_INLINE void add_side_norms(const FloatFactor& phi, std::int64_t p, Rows node,
                                    std::span<const Side> sides, const float* weight,
                                    const float* mean, SideSum* sums, double* norms) {
  const float* const group = phi.group(p);
  for (std::size_t begin = 0, block = 0; begin < node.size(); begin += kRowBlock, ++block) {
    const bool last = begin + kRowBlock >= node.size();
    for (std::size_t s = 0; s < sides.size(); ++s) {
      const Side& side = sides[s];
      const std::int32_t first = block == 0 ? 0 : side.block_ends[block - 1];
      const Rows rows = side.rows.subspan(first, side.block_ends[block] - first);
      Floats sum[packs];
      sum_group<plain, packs>(
          group, rows, [&](std::size_t k) OKFOREST_LAMBDA { return weight[rows[k]]; }, sum);
      if (last && block == 0) {
        const auto side_weight = fill<float, 16>(static_cast<float>(side.weight));
        auto norm = fill<float, 16>(0.0f);
        for (int c = 0; c < packs; ++c) {
          sum[c] = sum[c] - side_weight * load<float, 16>(mean + (p + c) * 16);
          norm = norm + sum[c] * sum[c];
        }
        norms[s] += static_cast<double>(total(norm));
        continue;
      }
      auto norm = fill<double, 16>(0.0);
      for (int c = 0; c < packs; ++c) {
        auto wide = widen(sum[c]);
        if (block > 0) wide = wide + load<double, 16>(sums[s].x + 16 * c);
        if (!last) {
          store(wide, sums[s].x + 16 * c);
        } else {
          const auto centre = widen(load<float, 16>(mean + (p + c) * 16));
          wide = wide - fill<double, 16>(side.weight) * centre;
          norm = norm + wide * wide;
        }
      }
      if (last) norms[s] += total(norm);
    }
  }
}

void side_norms(const FloatFactor& phi, Rows node, std::span<const Side> sides, const float* weight,
                const float* mean, SideSum* sums, double* norms) {
  for (std::size_t s = 0; s < sides.size(); ++s) norms[s] = 0.0;
  for (std::int64_t p = 0; p < phi.n_packs; p += FloatFactor::most_packs) {
    with_packs(phi.group_packs(p), weight == nullptr, [&](auto packs, auto plain) OKFOREST_LAMBDA {
      add_side_norms<plain, packs>(phi, p, node, sides, weight, mean, sums, norms);
    });
  }
}

// Adds to the norms the pairs of a row and a column of panel p. By symmetry, rows before its
// columns are left out, and rows behind them count twice. The rows of 64 lines stay in cache for
// all sides.
template <bool plain, int packs>
OKFOREST_INLINE void add_panel_sums(const GramPanels& gram, std::int64_t p,
                                    std::span<const PanelRows> sides, const float* weight,
                                    double* norms) {
  constexpr int width = GramPanels::width;
  alignas(64) float sums[kMaxSides][width];
  const float* const panel = gram.panel(p);
  for (std::int64_t i = p; i < gram.n_panels(); ++i) {
    for (std::size_t s = 0; s < sides.size(); ++s) {
      const std::int32_t* const starts = sides[s].starts;
      const Rows rows(sides[s].rows + starts[i], sides[s].rows + starts[i + 1]);
      if (rows.empty() || starts[p] == starts[p + 1]) continue;
      Floats sum[packs];
      sum_group<plain, packs, width>(
          panel, rows, [&](std::size_t k) OKFOREST_LAMBDA { return weight[rows[k]]; }, sum);
      for (int c = 0; c < packs; ++c) {
        if (i > p) sum[c] = load<float, 16>(sums[s] + 16 * c) + (sum[c] + sum[c]);
        store(sum[c], sums[s] + 16 * c);
      }
    }
  }
  for (std::size_t s = 0; s < sides.size(); ++s) {
    double total = 0.0;
    for (std::int32_t k = sides[s].starts[p]; k < sides[s].starts[p + 1]; ++k) {
      const std::int32_t row = sides[s].rows[k];
      const double x = sums[s][row - p * width];
      total += plain ? x : static_cast<double>(weight[row]) * x;
    }
    norms[s] += total;
  }
}

void pair_sums(const GramPanels& gram, std::span<const PanelRows> sides, const float* weight,
               double* norms) {
  for (std::size_t s = 0; s < sides.size(); ++s) norms[s] = 0.0;
  for (std::int64_t p = 0; p < gram.n_panels(); ++p) {
    with_packs((gram.n - p * GramPanels::width + 15) / 16, weight == nullptr,
               [&](auto packs, auto plain) OKFOREST_LAMBDA {
                 add_panel_sums<plain, packs>(gram, p, sides, weight, norms);
               });
  }
}

template <bool plain, int packs>
OKFOREST_INLINE void add_prefix_norms(const double* phi, std::int64_t n_cols, Rows rows,
                                      Rows lengths, const double* weight, const double* mean,
                                      double* norms) {
  Doubles centre[packs], sums[packs];
  for (int c = 0; c < packs; ++c) {
    centre[c] = load<double, 8>(mean + 8 * c);
    sums[c] = fill<double, 8>(0.0);
  }
  std::size_t k = 0;
  for (std::size_t n = 0; n < lengths.size(); ++n) {
    for (; k < static_cast<std::size_t>(lengths[n]); ++k) {
      const double* const row = phi + rows[k] * n_cols;
      for (int c = 0; c < packs; ++c) {
        auto x = load<double, 8>(row + 8 * c) - centre[c];
        if constexpr (!plain) x = x * fill<double, 8>(weight[rows[k]]);
        sums[c] = sums[c] + x;
      }
    }
    auto norm = sums[0] * sums[0];
    for (int c = 1; c < packs; ++c) norm = norm + sums[c] * sums[c];
    norms[n] += total(norm);
  }
}

void prefix_norms(const double* phi, std::int64_t n_cols, Rows rows, Rows lengths,
                  const double* weight, const double* mean, double* norms) {
  for (std::size_t n = 0; n < lengths.size(); ++n) norms[n] = 0.0;
  for (std::int64_t j = 0; j < n_cols; j += 32) {
    with_packs((n_cols - j) / 8, weight == nullptr, [&](auto packs, auto plain) OKFOREST_LAMBDA {
      add_prefix_norms<plain, packs>(phi + j, n_cols, rows, lengths, weight, mean + j, norms);
    });
  }
}

void add_scaled(double* __restrict sum, const double* __restrict x, double scale, std::int64_t n) {
  for (std::int64_t k = 0; k < n; ++k) sum[k] += scale * x[k];
}

// The sum of four rows at a time.
void sum_rows(const double* matrix, std::int64_t n_cols, Rows rows, const double* weight,
              double* sum) {
  for (std::int64_t j = 0; j < n_cols; ++j) sum[j] = 0.0;
  const auto row = [&](std::size_t k) { return matrix + rows[k] * n_cols; };
  const std::size_t n = rows.size();
  std::size_t k = 0;
  for (; k + 4 <= n; k += 4) {
    const double *a = row(k), *b = row(k + 1), *c = row(k + 2), *d = row(k + 3);
    for (std::size_t soon = k + 8; soon < k + 12 && soon < n; ++soon) {
      for (std::int64_t j = 0; j < n_cols && j < 128; j += 8) __builtin_prefetch(row(soon) + j);
    }
    if (weight == nullptr) {
      for (std::int64_t j = 0; j < n_cols; ++j) sum[j] += (a[j] + b[j]) + (c[j] + d[j]);
    } else {
      const double u = weight[k], v = weight[k + 1], w = weight[k + 2], x = weight[k + 3];
      for (std::int64_t j = 0; j < n_cols; ++j) {
        sum[j] += (u * a[j] + v * b[j]) + (w * c[j] + x * d[j]);
      }
    }
  }
  for (; k < n; ++k) add_scaled(sum, row(k), weight == nullptr ? 1.0 : weight[k], n_cols);
}

// The inner products of two rows with some others.
template <int tile>
OKFOREST_INLINE void gram_tile(const double* a, const double* b, const double* others,
                               std::int64_t n_cols, double* of_a, double* of_b) {
  Doubles sum[2 * tile];
  for (int c = 0; c < 2 * tile; ++c) sum[c] = fill<double, 8>(0.0);
  for (std::int64_t p = 0; p < n_cols; p += 8) {
    const auto x = load<double, 8>(a + p), y = load<double, 8>(b + p);
    for (int c = 0; c < tile; ++c) {
      auto other = load<double, 8>(others + c * n_cols + p);
      keep(other);
      sum[c] = sum[c] + x * other;
      sum[tile + c] = sum[tile + c] + y * other;
    }
  }
  for (int c = 0; c < tile; ++c) {
    of_a[c] = total(sum[c]);
    of_b[c] = total(sum[tile + c]);
  }
}

void gram(const double* rows, std::int64_t n, std::int64_t n_cols, double* gram) {
  constexpr int kTile = kVectorBytes == 64 ? 4 : 2;  // as registers allow
  for (std::int64_t i = 0; i < n; i += 2) {
    const std::int64_t next = i + 1 < n ? i + 1 : i;
    const double *const a = rows + i * n_cols, *const b = rows + next * n_cols;
    double *const of_a = gram + i * n, *const of_b = gram + next * n;
    std::int64_t j = 0;
    for (; j <= next && j + kTile <= n; j += kTile) {
      gram_tile<kTile>(a, b, rows + j * n_cols, n_cols, of_a + j, of_b + j);
    }
    for (; j <= next; ++j) gram_tile<1>(a, b, rows + j * n_cols, n_cols, of_a + j, of_b + j);
  }
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < i; ++j) gram[j * n + i] = gram[i * n + j];
  }
}

// Tiles above the diagonal are those below it, transposed in registers.
void copy_block(const double* matrix, std::int64_t n_cols, Rows places, double* block,
                float* panels) {
  constexpr std::int64_t width = GramPanels::width;
  const auto n = static_cast<std::int64_t>(places.size()), n_tiled = n / 8 * 8;
  const auto row = [&](std::int64_t i) OKFOREST_LAMBDA { return matrix + places[i] * n_cols; };
  const auto panel_entry = [&](std::int64_t i, std::int64_t j) OKFOREST_LAMBDA {
    return panels + (j / width * n + i) * width + j % width;
  };
  const auto store_tile = [&](const Doubles* tile, std::int64_t i, std::int64_t j) OKFOREST_LAMBDA {
    for (int c = 0; c < 8; ++c) store(tile[c], block + (i + c) * n + j);
    if (panels == nullptr) return;
    for (int c = 0; c < 8; ++c) store(convert<float>(tile[c]), panel_entry(i, j) + c * width);
  };
  for (std::int64_t i = 0; i < n_tiled; i += 8) {
    for (std::int64_t j = 0; j <= i; j += 8) {
      Doubles tile[8];
      for (int c = 0; c < 8; ++c) tile[c] = gather<double, 8>(row(i + c), places.data() + j);
      store_tile(tile, i, j);
      transpose<8>(tile);
      store_tile(tile, j, i);
    }
  }
  for (std::int64_t i = n_tiled; i < n; ++i) {
    for (std::int64_t j = 0; j <= i; ++j) {
      const double x = block[i * n + j] = block[j * n + i] = row(i)[places[j]];
      if (panels != nullptr) *panel_entry(i, j) = *panel_entry(j, i) = static_cast<float>(x);
    }
  }
}

template <bool right>
void sums_before(const float* row, const float* const rank[4], std::size_t t, std::size_t n_padded,
                 double sums[4]) {
  const auto none = fill<float, 16>(0.0f);
  Floats sum[4], own[4];
  for (int a = 0; a < 4; ++a) sum[a] = none, own[a] = fill<float, 16>(rank[a][t]);
  for (std::size_t j = 0; j < n_padded; j += 16) {
    const auto x = load<float, 16>(row + j);
    for (int a = 0; a < 4; ++a) {
      const auto other = load<float, 16>(rank[a] + j);
      sum[a] = sum[a] + (right ? select_at_most(own[a], other, none, x)
                               : select_at_most(other, own[a], none, x));
    }
  }
  for (int a = 0; a < 4; ++a) sums[a] = static_cast<double>(total(sum[a]));
}

// Stores sum - offset for 64 columns, and returns the largest.
OKFOREST_INLINE float store_scores(const Floats* sum, const float* offset, float* scores) {
  constexpr int packs = FloatFactor::most_packs;
  Floats score[packs];
  for (int c = 0; c < packs; ++c) {
    score[c] = sum[c] - load<float, 16>(offset + 16 * c);
    store(score[c], scores + 16 * c);
  }
  float lanes[16];
  store(larger(larger(score[0], score[1]), larger(score[2], score[3])), lanes);
  float largest = lanes[0];
  for (int j = 1; j < 16; ++j) largest = lanes[j] > largest ? lanes[j] : largest;
  return largest;
}

float panel_scores(const float* panel, const std::int32_t* rows, const float* weight, std::size_t n,
                   const float* offset, float* scores) {
  constexpr int packs = FloatFactor::most_packs;
  Floats sum[packs];
  sum_group<false, packs>(
      panel, {rows, n}, [&](std::size_t k) OKFOREST_LAMBDA { return weight[k]; }, sum);
  return store_scores(sum, offset, scores);
}

float bit_scores(const std::uint64_t* panel, const float* weight, std::size_t n,
                 const float* offset, float* scores) {
  constexpr int packs = FloatFactor::most_packs;
  std::uint32_t bits[16];
  for (int j = 0; j < 16; ++j) bits[j] = std::uint32_t{1} << j;
  const auto bit = load<std::uint32_t, 16>(bits);
  Floats sum[packs];
  for (int c = 0; c < packs; ++c) sum[c] = fill<float, 16>(0.0f);
  for (std::size_t k = 0; k < n; ++k) {
    const auto x = fill<float, 16>(weight[k]);
    for (int c = 0; c < packs; ++c) {
      const auto part = fill<std::uint32_t, 16>(static_cast<std::uint32_t>(panel[k] >> 16 * c));
      const auto taken =
          each<float>([](auto word, auto one, auto y)
                          OKFOREST_LAMBDA { return (word & one) != 0 ? y : decltype(y){}; },
                      part, bit, x);
      sum[c] = sum[c] + taken;
    }
  }
  return store_scores(sum, offset, scores);
}

double squared_distance(const double* a, const double* b, double scale, std::int64_t n) {
  auto sum = fill<double, 8>(0.0);
  std::int64_t k = 0;
  for (; k + 8 <= n; k += 8) {
    const auto d = load<double, 8>(a + k) - fill<double, 8>(scale) * load<double, 8>(b + k);
    sum = sum + d * d;
  }
  double rest = 0.0;
  for (; k < n; ++k) rest += (a[k] - scale * b[k]) * (a[k] - scale * b[k]);
  return total(sum) + rest;
}

void subtract_both(double* matrix, std::int64_t n, const double* lines, const std::int32_t* places,
                   std::int64_t begin, std::int64_t end, double* sums) {
  const auto line = [&](std::int64_t i) OKFOREST_LAMBDA { return lines + places[i] * n; };
  const auto finish_row = [&](std::int64_t i, std::int64_t j, double sum) OKFOREST_LAMBDA {
    for (; j < n; ++j) sum += matrix[i * n + j] -= line(i)[j] + line(j)[i];
    sums[i] = sum;
  };
  std::int64_t i = begin;
  for (; i + 8 <= end; i += 8) {
    Doubles sum[8], across[8];
    for (int c = 0; c < 8; ++c) sum[c] = fill<double, 8>(0.0);
    std::int64_t j = 0;
    for (; j + 8 <= n; j += 8) {
      for (int c = 0; c < 8; ++c) across[c] = load<double, 8>(line(j + c) + i);
      transpose<8>(across);
      for (int c = 0; c < 8; ++c) {
        double* const at = matrix + (i + c) * n + j;
        __builtin_prefetch(at + 64, 1);
        const auto x = load<double, 8>(at) - (load<double, 8>(line(i + c) + j) + across[c]);
        store(x, at);
        sum[c] = sum[c] + x;
      }
    }
    for (int c = 0; c < 8; ++c) finish_row(i + c, j, total(sum[c]));
  }
  for (; i < end; ++i) finish_row(i, 0, 0.0);
}

}  // namespace

extern const Kernels level_kernels;
const Kernels level_kernels = {OKFOREST_LEVEL_NAME,
                               cut_kernels<float>(),
                               cut_kernels<double>(),
                               line_kernels<std::uint8_t, float>(),
                               side_norms,
                               pair_sums,
                               prefix_norms,
                               sum_rows,
                               gram,
                               copy_block,
                               {sums_before<false>, sums_before<true>},
                               panel_scores,
                               bit_scores,
                               add_scaled,
                               squared_distance,
                               subtract_both};

}  // namespace okforest::OKFOREST_LEVEL
