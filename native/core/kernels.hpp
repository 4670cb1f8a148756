// The hot loops, compiled once per instruction set: the best one for this machine is chosen when
// the library is loaded. All levels give the same results, to the last bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "core/gain.hpp"
#include "core/random.hpp"

namespace okforest {

using Rows = std::span<const std::int32_t>;

// Random cuts are processed for this many features at a time, one per SIMD lane.
inline constexpr std::size_t kCutWidth = 16;

// Cuts of larger nodes are scored up to this many at a time, while their rows are in cache.
inline constexpr std::size_t kMaxSides = 64;

// In nodes of at most this many rows, all cuts are scored at once from inner products.
inline constexpr std::size_t kSmallNode = 32;

// The inner products of the rows of a small node, around any origin: entries[place[k] * stride +
// place[l]] is <phi_k, phi_l>.
struct SmallGram {
  const double* entries;
  std::int64_t stride;
  std::int32_t place[kSmallNode];
  double reach[kSmallNode];  // <phi_k, node mean>
  double mean_norm;          // ||node mean||^2

  const double* row(std::size_t k) const { return entries + place[k] * stride; }
};

// A node is read in blocks of rows. Sums over a block in float32 are added to sums in float64.
inline constexpr std::size_t kRowBlock = 256;
struct SideSum {
  alignas(64) double x[64];
};

// A float32 copy of Phi, in groups of up to 64 columns: a row of a group is contiguous.
struct FloatFactor {
  static constexpr std::int64_t lanes = 16, most_packs = 4;

  const float* data;
  std::int64_t n_rows, n_packs;

  std::int64_t group_packs(std::int64_t first) const {
    return n_packs - first < most_packs ? n_packs - first : most_packs;
  }
  const float* group(std::int64_t first) const { return data + first * lanes * n_rows; }
};

// A float32 copy of a Gram matrix, in panels of 64 columns, the last one padded: a row of a panel
// is contiguous.
struct GramPanels {
  static constexpr std::int64_t width = 64;

  const float* data = nullptr;
  std::int64_t n = 0;

  std::int64_t n_panels() const { return (n + width - 1) / width; }
  const float* panel(std::int64_t p) const { return data + p * width * n; }
};

// Some rows of a Gram matrix, ascending, and how many of them are before each panel's columns, and
// before the end.
struct PanelRows {
  const std::int32_t* rows;
  const std::int32_t* starts;
};

// One side of a cut: its rows, ascending, and how many of them are in the first blocks of the node.
struct Side {
  Rows rows;
  const std::int32_t* block_ends;
  double weight;
};

// The values of kCutWidth features in n rows, row by row, and a cut of each: its threshold and the
// range of its values.
template <class Stored, class T = Stored>
struct CutLines {
  const Stored* lines;
  std::size_t n;
  const T *threshold, *low, *high;
};

// The weights of rows in gains, and their counts in stopping rules: the same array, which is not
// read, if all are one.
struct RowWeights {
  const double *weight, *count;

  bool counted() const { return count != weight; }
};

// Where the gains of kCutWidth cuts, and the weights of their left sides, are written.
struct CutGains {
  double *gain, *left_weight;
};

// For inputs that are stored as T, or as bytes. Thresholds of bytes are those of the same values in
// float32.
template <class Stored, class T = Stored>
struct LineKernels {
  // Finds the ranges of kCutWidth values of each row and returns whether any is missing; if so,
  // finds in which lanes.
  bool (*ranges)(const Stored* lines, std::size_t n, T* low, T* high, bool* missing);

  // Gains and left weights of all cuts of a node whose outputs are classes, given those of its rows
  // and their shares. `scratch` has kCutWidth numbers for each class.
  void (*class_gains)(const CutLines<Stored, T>& cuts, const std::int32_t* classes,
                      std::span<const double> shares, const RowWeights& rows, const Gain& gain,
                      double* scratch, const CutGains& gains);
};

template <class T>
struct CutKernels : LineKernels<T> {
  // The bits of a word are the sides of as many rows.
  using Word = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

  // uniform_between(low, high, stream.ahead(feature * stride).uniform()) for each feature. A value
  // is at most the threshold if and only if it is at most `rounded`.
  void (*thresholds)(Rng stream, std::uint64_t stride, const std::int32_t* features, const T* low,
                     const T* high, double* thresholds, T* rounded);

  // The weights of the values up to each threshold, and of all values that are not missing; weights
  // may be null. And missing values replaced by others.
  void (*present_weights)(const T* lines, std::size_t n, const T* thresholds, const double* weights,
                          double* left, double* present);
  void (*fill_missing)(T* lines, std::size_t n, const T* values);

  // The sides of all rows as bits, and the number of rows on the left.
  void (*sides)(const T* lines, std::size_t n, const T* thresholds, Word* words,
                std::int64_t* n_left);

  // places[k * kCutWidth + c]: how many rows come before row k if sorted by feature c. Equal values
  // stay in the order of rows; none may be missing.
  void (*places)(const T* lines, std::size_t n, Word* places);

  // Lists the rows whose bit is set, or not set with `flip`, and counts those in each block.
  std::size_t (*list)(const Word* words, const std::int32_t* rows, std::size_t n, bool flip,
                      std::int32_t* out, std::int32_t* block_ends);

  // Gains and left weights of all cuts of a small node.
  void (*small_gains)(const CutLines<T>& cuts, const SmallGram& gram, const RowWeights& rows,
                      const Gain& gain, const CutGains& gains);

  // The same for a node of any size with one output, given w_i (y_i - mean) instead of products.
  void (*scalar_gains)(const CutLines<T>& cuts, const double* values, const RowWeights& rows,
                       const Gain& gain, const CutGains& gains);
};

struct Kernels {
  std::string_view level;
  CutKernels<float> float_cuts;
  CutKernels<double> double_cuts;
  LineKernels<std::uint8_t, float> byte_cuts;

  // norms[s] = || sum over side s of w_i phi_i - W_s mean ||^2, with sums in float32 over blocks of
  // the node's rows. `sums` is scratch memory, one per side; weights may be null.
  void (*side_norms)(const FloatFactor& phi, Rows node, std::span<const Side> sides,
                     const float* weight, const float* mean, SideSum* sums, double* norms);

  // norms[s] = the sum of w_a w_b <a, b> over all pairs of rows of side s, of which there are at
  // most kMaxSides, with sums in float32 over the rows of panels. Weights may be null.
  void (*pair_sums)(const GramPanels& gram, std::span<const PanelRows> sides, const float* weight,
                    double* norms);

  // norms[k] = || sum over the first lengths[k] rows of w_i (phi_i - mean) ||^2. The rows of phi
  // have a multiple of eight numbers; weights may be null.
  void (*prefix_norms)(const double* phi, std::int64_t n_cols, Rows rows, Rows lengths,
                       const double* weight, const double* mean, double* norms);

  // The weighted sum of some rows of a matrix; weights, by position in the list, may be null.
  void (*sum_rows)(const double* matrix, std::int64_t n_cols, Rows rows, const double* weight,
                   double* sum);

  // The inner products of n rows of n_cols numbers, a multiple of eight.
  void (*gram)(const double* rows, std::int64_t n, std::int64_t n_cols, double* gram);

  // Copies some rows and the same columns of a symmetric matrix, of which one half is read, and to
  // panels unless these are null.
  void (*copy_block)(const double* matrix, std::int64_t n_cols, Rows places, double* block,
                     float* panels);

  // For four pairs of lists: the sum of the entries of a row that come before entry t in its list.
  // Ranks are positive and falling in left lists, negative and rising in right ones, whose function
  // is the second, and zero outside of both.
  void (*sums_before[2])(const float* row, const float* const rank[4], std::size_t t,
                         std::size_t n_padded, double sums[4]);

  // scores[j] = sum over k of weight[k] * panel[rows[k]][j] - offset[j], for a group of 64 columns
  // of a FloatFactor. Returns the largest.
  float (*panel_scores)(const float* panel, const std::int32_t* rows, const float* weight,
                        std::size_t n, const float* offset, float* scores);

  // The same for a panel of bits: word k has the entries of row k in 64 columns.
  float (*bit_scores)(const std::uint64_t* panel, const float* weight, std::size_t n,
                      const float* offset, float* scores);

  // sum[k] += scale * x[k], and the squared distance between a and scale * b.
  void (*add_scaled)(double* sum, const double* x, double scale, std::int64_t n);
  double (*squared_distance)(const double* a, const double* b, double scale, std::int64_t n);

  // matrix[i][j] -= lines[places[i]][j] + lines[places[j]][i] in some rows of an n x n matrix, and
  // sums[i] = the sum of row i afterwards.
  void (*subtract_both)(double* matrix, std::int64_t n, const double* lines,
                        const std::int32_t* places, std::int64_t begin, std::int64_t end,
                        double* sums);

  template <class T>
  const CutKernels<T>& cuts() const {
    if constexpr (sizeof(T) == 4) {
      return float_cuts;
    } else {
      return double_cuts;
    }
  }
};

// The kernels in use, and a choice by name: "baseline", "avx2", "avx512" or, by default, the best.
// Returns whether this machine can run the level.
const Kernels& kernels();
bool choose_kernels(std::string_view level);

}  // namespace okforest
