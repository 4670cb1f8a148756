// The inputs X: dense, sparse by columns (for growing) or sparse by rows (for prediction). NaN is a
// missing value. A categorical feature holds codes 0, 1, ...; any other value counts as missing.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/aligned_array.hpp"
#include "core/kernels.hpp"  // for kCutWidth
#include "core/watch.hpp"

namespace okforest {

// Rows are read in an order that the hardware cannot predict. If an array has more bytes than this,
// they are prefetched, this many rows ahead.
inline constexpr std::size_t kCacheSize = 1 << 20;
inline constexpr std::size_t kPrefetchDistance = 8;

template <class T>
struct Value {
  T x;
  std::int32_t row;
};

// A dense matrix of float32, float64 or bytes, in any layout; strides are in elements. Bytes are
// stored as they are and read as float32.
template <class Stored>
struct DenseInputs {
  static constexpr bool is_dense = true;
  static constexpr bool has_bytes = std::is_same_v<Stored, std::uint8_t>;
  using Element = std::conditional_t<has_bytes, float, Stored>;
  const Stored* data;
  std::int64_t n_rows;
  std::int64_t n_cols;
  std::int64_t row_stride;
  std::int64_t col_stride;
  AlignedArray<Stored> columns{};  // a column-major copy of the matrix, or empty

  Element operator()(std::int64_t row, std::int64_t col) const {
    return data[row * row_stride + col * col_stride];
  }

  bool exceeds_cache() const {
    return static_cast<std::size_t>(n_rows * n_cols) * sizeof(Stored) > kCacheSize;
  }

  // Whether n rows are read from the copy: if they are many, the rest of a cache line is used, too.
  bool by_columns(std::size_t n) const {
    return !columns.empty() && 4 * n >= static_cast<std::size_t>(n_rows);
  }

  // Gathers a feature's values in some rows.
  void gather(std::int32_t col, std::span<const std::int32_t> rows, Value<Element>* out) const {
    const bool of_copy = by_columns(rows.size()), prefetch = !of_copy && exceeds_cache();
    const Stored* const column = of_copy ? columns.data() + col * n_rows : data + col * col_stride;
    const std::int64_t stride = of_copy ? 1 : row_stride;
    for (std::size_t k = 0; k < rows.size(); ++k) {
      if (prefetch && k + kPrefetchDistance < rows.size()) {
        __builtin_prefetch(column + rows[k + kPrefetchDistance] * stride);
      }
      *out++ = {static_cast<Element>(column[rows[k] * stride]), rows[k]};
    }
  }

  // Gathers the values of a few features, kCutWidth numbers for each row: elements, or bytes as
  // they are stored.
  template <class Number>
  void gather(std::span<const std::int32_t> cols, std::span<const std::int32_t> rows,
              Number* out) const {
    constexpr std::size_t width = kCutWidth;
    if (col_stride == 1 && cols.size() == width && std::ranges::is_sorted(cols) &&
        cols.back() - cols.front() == width - 1) {
      for (const auto row : rows) {
        Stored line[width];  // of a constant size, and not an alias of `out`: no calls of memmove
        __builtin_memcpy(line, data + row * row_stride + cols.front(), sizeof(line));
        for (std::size_t c = 0; c < width; ++c) out[c] = line[c];
        out += width;
      }
      return;
    }
    if (by_columns(rows.size())) {
      constexpr std::size_t block = 128;  // rows, whose lines stay in cache
      for (std::size_t begin = 0; begin < rows.size(); begin += block) {
        const std::size_t end = std::min(rows.size(), begin + block);
        for (std::size_t c = 0; c < cols.size(); ++c) {
          const Stored* column = columns.data() + cols[c] * n_rows;
          for (std::size_t k = begin; k < end; ++k) out[k * width + c] = column[rows[k]];
        }
      }
      return;
    }
    std::int64_t offset[width];
    std::ranges::transform(cols, offset, [&](std::int32_t col) { return col * col_stride; });
    // The number of features is a constant there, so that the loops over them are unrolled.
    [&]<std::size_t... n>(std::index_sequence<n...>) {
      (void)((cols.size() == n + 1 && (gather_lines<n + 1>(offset, rows, out), true)) || ...);
    }(std::make_index_sequence<width>{});
  }

  template <std::size_t n, class Number>
  void gather_lines(const std::int64_t* offset, std::span<const std::int32_t> rows,
                    Number* out) const {
    constexpr std::int64_t of_line = 64 / sizeof(Stored);  // values in a cache line
    const bool prefetch = exceeds_cache();
    const bool whole = col_stride == 1 && n_cols <= of_line * static_cast<std::int64_t>(n);
    for (std::size_t k = 0; k < rows.size(); ++k) {
      if (prefetch && k + kPrefetchDistance < rows.size()) {
        const Stored* soon = data + rows[k + kPrefetchDistance] * row_stride;
        if (whole) {  // a row has fewer cache lines than features are read
          for (std::int64_t c = 0; c < n_cols; c += of_line) __builtin_prefetch(soon + c);
          __builtin_prefetch(soon + n_cols - 1);
        } else {
          for (std::size_t c = 0; c < n; ++c) __builtin_prefetch(soon + offset[c]);
        }
      }
      const Stored* at = data + rows[k] * row_stride;
      for (std::size_t c = 0; c < n; ++c) out[c] = at[offset[c]];
      out += kCutWidth;
    }
  }

  void copy_columns(Pace& pace) {
    constexpr std::int64_t tile = 64 / sizeof(Stored);  // rows: a cache line of a column
    columns.resize(static_cast<std::size_t>(n_rows * n_cols));
    for (std::int64_t row = 0; row < n_rows; row += tile) {
      const std::int64_t last = std::min(n_rows, row + tile);
      for (std::int64_t col = 0; col < n_cols; ++col) {
        Stored* out = columns.data() + col * n_rows;
        for (std::int64_t i = row; i < last; ++i) {
          out[i] = data[i * row_stride + col * col_stride];
        }
      }
      pace.advance(tile * n_cols);
    }
  }
};

// Compressed sparse columns, rows ascending in each.
template <class T>
struct ColumnInputs {
  using Element = T;
  static constexpr bool is_dense = false, has_bytes = false;
  std::span<const T> data;
  std::span<const std::int32_t> rows_of_data;
  std::span<const std::int64_t> offsets;  // n_cols + 1
  std::int64_t n_rows;
  std::int64_t n_cols;

  // Whether it pays off to list the values of a feature other than zero.
  bool mostly_zeros() const { return 8.0 * data.size() <= 1.0 * n_rows * n_cols; }

  // Gathers a feature's values other than zero in some rows, and returns how many there are. The
  // "row" of a value is its place among these rows, which `place` gives for each of them.
  std::size_t gather_stored(std::int32_t col, std::span<const std::int32_t> rows,
                            const std::int32_t* place, Value<T>* out) const {
    std::size_t n = 0;
    const std::int64_t begin = offsets[col], end = offsets[col + 1];
    if (end - begin > 8 * static_cast<std::int64_t>(rows.size())) {
      visit_stored(col, rows, [&](std::size_t k, T x) {
        out[n] = {x, static_cast<std::int32_t>(k)};
        n += x != 0;
      });
      return n;
    }
    // The place of a row that is not among them is that of another one, or none.
    for (std::int64_t s = begin; s < end; ++s) {
      const auto k = static_cast<std::size_t>(place[rows_of_data[s]]);
      if (k >= rows.size() || rows[k] != rows_of_data[s]) continue;
      out[n] = {data[s], static_cast<std::int32_t>(k)};
      n += data[s] != 0;
    }
    return n;
  }

  void gather(std::int32_t col, std::span<const std::int32_t> rows, Value<T>* out) const {
    for (std::size_t k = 0; k < rows.size(); ++k) out[k] = {T{0}, rows[k]};
    visit_stored(col, rows, [&](std::size_t k, T x) { out[k].x = x; });
  }

  void gather(std::span<const std::int32_t> cols, std::span<const std::int32_t> rows,
              T* out) const {
    constexpr std::size_t width = kCutWidth;
    std::fill_n(out, rows.size() * width, T{0});
    for (std::size_t c = 0; c < cols.size(); ++c) {
      visit_stored(cols[c], rows, [&](std::size_t k, T x) { out[k * width + c] = x; });
    }
  }

 private:
  // Calls f(k, x) for each stored value x in rows[k]. Rows are ascending, as in every node.
  template <class F>
  void visit_stored(std::int32_t col, std::span<const std::int32_t> rows, F&& f) const {
    const std::int64_t begin = offsets[col];
    const auto stored = rows_of_data.subspan(begin, offsets[col + 1] - begin);
    // The numbers of the shorter list are searched in the longer one; or both are passed through,
    // whichever is less work.
    const auto in_both = [](auto few, auto many, auto&& take) {
      const bool search = few.size() * std::bit_width(many.size()) < many.size();
      auto at = many.begin();
      for (std::size_t k = 0; k < few.size(); ++k) {
        if (search) {
          at = std::lower_bound(at, many.end(), few[k]);
        } else {
          while (at != many.end() && *at < few[k]) ++at;
        }
        if (at == many.end()) return;
        if (*at == few[k]) take(k, static_cast<std::size_t>(at - many.begin()));
      }
    };
    const auto value = [&](std::size_t k, std::size_t s) { f(k, data[begin + s]); };
    if (stored.size() < rows.size()) {
      in_both(stored, rows, [&](std::size_t s, std::size_t k) { value(k, s); });
    } else {
      in_both(rows, stored, value);
    }
  }
};

// Compressed sparse rows, columns ascending in each.
template <class T>
struct RowInputs {
  static constexpr bool is_dense = false;
  std::span<const T> data;
  std::span<const std::int32_t> cols_of_data;
  std::span<const std::int64_t> offsets;  // n_rows + 1
  std::int64_t n_rows;
  std::int64_t n_cols;

  T operator()(std::int64_t row, std::int32_t col) const {
    const auto* begin = cols_of_data.data() + offsets[row];
    const auto* end = cols_of_data.data() + offsets[row + 1];
    const auto* at = std::lower_bound(begin, end, col);
    return at != end && *at == col ? data[offsets[row] + (at - begin)] : T{0};
  }
};

// The test of a node: whether a value goes left.
struct Test {
  double threshold = 0.0;                // numeric: x <= threshold goes left
  const std::uint64_t* words = nullptr;  // categorical: code c goes left if bit c is set
  std::int32_t n_categories = 0;
  bool missing_left = false;

  bool left(double x) const {
    if (std::isnan(x)) return missing_left;
    if (words == nullptr) return x <= threshold;
    if (!(x >= 0.0 && x < n_categories)) return missing_left;
    const auto code = static_cast<std::uint32_t>(x);
    return (words[code / 64] >> (code % 64)) & 1;
  }
};

// The threshold between two neighbouring values of a feature: a number t with below <= t < above;
// infinite if `above` is.
inline double threshold_between(double below, double above) {
  const double middle = below / 2 + above / 2;
  const bool between = middle < above || above == std::numeric_limits<double>::infinity();
  return middle >= below && between ? middle : below;
}

inline std::int64_t n_words(std::int32_t n_categories) { return (n_categories + 63) / 64; }

}  // namespace okforest
