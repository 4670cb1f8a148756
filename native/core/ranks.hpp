// The order of each numeric feature's values over all training rows, found once for a forest: a
// node's rows are then sorted by their places in it, without comparing values.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "core/inputs.hpp"

namespace okforest {

class Ranks {
 public:
  template <class T>
  Ranks(const DenseInputs<T>& X, std::span<const std::int32_t> n_categories)
      : n_rows_(static_cast<std::size_t>(X.n_rows)),
        rank_(n_rows_ * static_cast<std::size_t>(X.n_cols)) {
    std::vector<Value<T>> values(n_rows_);
    std::vector<std::int32_t> rows(n_rows_);
    std::iota(rows.begin(), rows.end(), 0);
    for (std::int32_t f = 0; f < X.n_cols; ++f) {
      if (n_categories[f] > 0) continue;
      X.gather(f, rows, values.data());
      std::stable_sort(values.begin(), values.end(), [](const auto& a, const auto& b) {
        return a.x < b.x || (!std::isnan(a.x) && std::isnan(b.x));
      });
      std::int32_t* rank = rank_.data() + static_cast<std::size_t>(f) * n_rows_;
      for (std::size_t r = 0; r < n_rows_; ++r) rank[values[r].row] = static_cast<std::int32_t>(r);
    }
  }

  // The order of a feature: training row -> its place; missing values come last.
  const std::int32_t* of(std::int32_t feature) const {
    return rank_.data() + static_cast<std::size_t>(feature) * n_rows_;
  }

  std::size_t n_rows() const { return n_rows_; }

 private:
  std::size_t n_rows_;
  std::vector<std::int32_t> rank_;  // feature by feature
};

// Sorts rows by their places in an order of all of them.
class RankSort {
 public:
  void operator()(const std::int32_t* rank, std::size_t n_places,
                  std::span<const std::int32_t> rows, std::int32_t* out) {
    const std::size_t n_words = (n_places + 63) / 64;
    if (8 * rows.size() < n_words) {
      std::copy(rows.begin(), rows.end(), out);
      std::sort(out, out + rows.size(), [&](auto a, auto b) { return rank[a] < rank[b]; });
      return;
    }
    // Marks the places that are taken, and reads the marks from left to right.
    taken_.resize(n_words);
    row_at_.resize(n_places);
    for (const auto row : rows) {
      const auto place = static_cast<std::size_t>(rank[row]);
      taken_[place / 64] |= 1ULL << (place % 64);
      row_at_[place] = row;
    }
    for (std::size_t w = 0; w < n_words; ++w) {
      for (std::uint64_t word = taken_[w]; word != 0; word &= word - 1) {
        *out++ = row_at_[64 * w + static_cast<std::size_t>(std::countr_zero(word))];
      }
      taken_[w] = 0;
    }
  }

 private:
  std::vector<std::uint64_t> taken_;  // zero between sorts
  std::vector<std::int32_t> row_at_;
};

}  // namespace okforest
