// The ranks of all training rows by each numeric feature, computed once per forest. The rows of a
// node are then sorted by rank, without comparing values.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <mutex>
#include <numeric>
#include <span>
#include <type_traits>
#include <vector>

#include "core/inputs.hpp"

namespace okforest {

// An integer that sorts like the value: missing values come last, and the two zeros are equal.
template <class T>
auto sortable(T x) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr Bits sign = Bits{1} << (8 * sizeof(T) - 1);
  if (std::isnan(x)) return static_cast<Bits>(~Bits{0});
  const Bits bits = std::bit_cast<Bits>(x + T{0});  // -0 + 0 is 0
  return static_cast<Bits>(bits & sign ? ~bits : bits | sign);
}

// Sorts all training rows by a feature: stable radix sort, one byte at a time from the least
// significant.
template <class Inputs>
class RadixSort {
 public:
  using T = typename Inputs::Element;
  using Key = decltype(sortable(T{}));
  struct Item {
    Key key;
    std::int32_t row;
  };

  // The rows in the order of their values, which are in the order of rows; until the next call.
  std::span<const Item> operator()(const Inputs& X, std::int32_t feature) {
    const auto n = static_cast<std::size_t>(X.n_rows);
    if (values_.empty()) {
      values_.resize(n);
      items_.resize(n);
      other_.resize(n);
      rows_.resize(n);
      std::iota(rows_.begin(), rows_.end(), 0);
    }
    X.gather(feature, rows_, values_.data());
    std::array<std::array<std::uint32_t, 256>, sizeof(Key)> counts{};
    for (std::size_t r = 0; r < n; ++r) {
      items_[r] = {sortable(values_[r].x), values_[r].row};
      for (std::size_t b = 0; b < sizeof(Key); ++b) ++counts[b][byte(items_[r].key, b)];
    }
    for (std::size_t b = 0; b < sizeof(Key); ++b) {
      auto& place = counts[b];
      if (place[byte(items_[0].key, b)] == n) continue;  // all equal
      std::exclusive_scan(place.begin(), place.end(), place.begin(), 0u);
      for (const Item& item : items_) other_[place[byte(item.key, b)]++] = item;
      items_.swap(other_);
    }
    return items_;
  }
  std::span<const Value<T>> values() const { return values_; }

 private:
  static std::size_t byte(Key key, std::size_t b) { return (key >> (8 * b)) & 0xff; }

  std::vector<std::int32_t> rows_;
  std::vector<Value<T>> values_;
  std::vector<Item> items_, other_;
};

// A feature is sorted when it is first used, by the thread that needs it.
template <class Inputs>
class Ranks {
 public:
  using T = typename Inputs::Element;

  explicit Ranks(const Inputs& X)
      : X_(X), features_(std::make_unique<Feature[]>(static_cast<std::size_t>(X.n_cols))) {}

  std::size_t n_rows() const { return static_cast<std::size_t>(X_.n_rows); }

  struct Feature {
    std::once_flag once;
    std::unique_ptr<std::int32_t[]> rank;  // of the training rows
    std::unique_ptr<Value<T>[]> sorted;    // missing values last
  };

  const Feature& of(std::int32_t number, RadixSort<Inputs>& sort) {
    Feature& feature = features_[static_cast<std::size_t>(number)];
    std::call_once(feature.once, [&] {
      feature.rank = std::make_unique_for_overwrite<std::int32_t[]>(n_rows());
      feature.sorted = std::make_unique_for_overwrite<Value<T>[]>(n_rows());
      const auto items = sort(X_, number);
      for (std::size_t r = 0; r < n_rows(); ++r) {
        const std::int32_t row = items[r].row;
        feature.rank[row] = static_cast<std::int32_t>(r);
        feature.sorted[r] = sort.values()[row];
      }
    });
    return feature;
  }

 private:
  const Inputs& X_;
  std::unique_ptr<Feature[]> features_;
};

// Sorts the rows of a node by their ranks among all rows.
template <class Inputs>
class RankSort {
 public:
  using T = typename Inputs::Element;

  explicit RankSort(Ranks<Inputs>& ranks) : ranks_(ranks), taken_((ranks.n_rows() + 63) / 64) {}

  // Begins a node; its rows must stay valid until the next. Returns whether this is faster than
  // sorting their values.
  bool enter(std::span<const std::int32_t> rows) {
    rows_ = rows;
    return kSmall * rows.size() >= ranks_.n_rows();
  }

  // Writes the node's values of a feature, sorted, missing ones last: sets a bit for each rank in
  // the node, then reads the bits in order.
  void operator()(std::int32_t feature, Value<T>* out) {
    const auto& ranked = ranks_.of(feature, sort_);
    const std::int32_t* place = ranked.rank.get();
    const Value<T>* sorted = ranked.sorted.get();
    for (std::size_t k = 0; k < rows_.size(); ++k) {
      if (k + kPrefetchDistance < rows_.size()) {
        __builtin_prefetch(place + rows_[k + kPrefetchDistance]);
      }
      const auto p = static_cast<std::size_t>(place[rows_[k]]);
      taken_[p / 64] |= 1ULL << (p % 64);
    }
    for (std::size_t w = 0; w < taken_.size(); ++w) {
      for (std::uint64_t word = taken_[w]; word != 0; word &= word - 1) {
        *out++ = sorted[64 * w + static_cast<std::size_t>(std::countr_zero(word))];
      }
      taken_[w] = 0;
    }
  }

 private:
  static constexpr std::size_t kSmall = 512;  // nodes of less than 1 / kSmall of all rows are small

  Ranks<Inputs>& ranks_;
  RadixSort<Inputs> sort_;
  std::span<const std::int32_t> rows_;
  std::vector<std::uint64_t> taken_;  // zero between sorts
};

}  // namespace okforest
