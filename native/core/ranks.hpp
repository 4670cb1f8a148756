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

// Stable radix sort by key, one byte at a time from the least significant.
template <class Key>
class RadixSort {
 public:
  struct Item {
    Key key;
    std::int32_t row;
  };

  explicit RadixSort(std::size_t n) : items_(n), other_(n) {}

  std::span<Item> items() { return items_; }

  void operator()() {
    std::array<std::array<std::uint32_t, 256>, sizeof(Key)> counts{};
    for (const Item& item : items_) {
      for (std::size_t b = 0; b < sizeof(Key); ++b) ++counts[b][byte(item.key, b)];
    }
    for (std::size_t b = 0; b < sizeof(Key); ++b) {
      auto& place = counts[b];
      if (items_.empty() || place[byte(items_[0].key, b)] == items_.size()) continue;  // all equal
      std::exclusive_scan(place.begin(), place.end(), place.begin(), 0u);
      for (const Item& item : items_) other_[place[byte(item.key, b)]++] = item;
      items_.swap(other_);
    }
  }

 private:
  static std::size_t byte(Key key, std::size_t b) { return (key >> (8 * b)) & 0xff; }

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
    std::vector<std::int32_t> rank;  // of the training rows
    std::vector<Value<T>> sorted;    // missing values last
  };

  const Feature& of(std::int32_t number) {
    Feature& feature = features_[static_cast<std::size_t>(number)];
    std::call_once(feature.once, [&] { sort(number, feature); });
    return feature;
  }

 private:
  void sort(std::int32_t number, Feature& feature) const {
    std::vector<std::int32_t> rows(n_rows());
    std::iota(rows.begin(), rows.end(), 0);
    std::vector<Value<T>> values(n_rows());
    X_.gather(number, rows, values.data());
    RadixSort<decltype(sortable(T{}))> sort(n_rows());
    for (std::size_t r = 0; r < n_rows(); ++r) {
      sort.items()[r] = {sortable(values[r].x), values[r].row};
    }
    sort();
    feature.rank.resize(n_rows());
    feature.sorted.resize(n_rows());
    for (std::size_t r = 0; r < n_rows(); ++r) {
      const std::int32_t row = sort.items()[r].row;
      feature.rank[row] = static_cast<std::int32_t>(r);
      feature.sorted[r] = values[row];
    }
  }

  const Inputs& X_;
  std::unique_ptr<Feature[]> features_;
};

// Sorts the rows of a node by their ranks among all rows.
template <class Inputs>
class RankSort {
 public:
  using T = typename Inputs::Element;

  explicit RankSort(Ranks<Inputs>& ranks)
      : ranks_(ranks), inside_(ranks.n_rows()), taken_((ranks.n_rows() + 63) / 64) {}

  // Begins a node; its rows must stay valid until the next.
  void enter(std::span<const std::int32_t> rows) {
    rows_ = rows;
    is_large_ = kLarge * rows.size() >= inside_.size();
    if (!is_large_) return;
    std::ranges::fill(inside_, 0);
    for (const auto row : rows) inside_[row] = 1;
  }

  // Writes the node's values of a feature, sorted, missing ones last.
  void operator()(std::int32_t feature, Value<T>* out) {
    const auto& ranked = ranks_.of(feature);
    const std::int32_t* place = ranked.rank.data();
    const Value<T>* sorted = ranked.sorted.data();
    if (is_large_) {
      // Without branches: each value is written, and kept if its row is in the node.
      for (Value<T>* const end = out + rows_.size(); out < end; ++sorted) {
        *out = *sorted;
        out += inside_[sorted->row];
      }
    } else if (8 * rows_.size() < taken_.size()) {
      places_.clear();
      for (const auto row : rows_) places_.push_back(place[row]);
      std::ranges::sort(places_);
      for (const auto p : places_) *out++ = sorted[p];
    } else {
      // Sets a bit for each rank in the node, then reads the bits in order.
      for (const auto row : rows_) {
        taken_[static_cast<std::size_t>(place[row]) / 64] |= 1ULL << (place[row] % 64);
      }
      for (std::size_t w = 0; w < taken_.size(); ++w) {
        for (std::uint64_t word = taken_[w]; word != 0; word &= word - 1) {
          *out++ = sorted[64 * w + static_cast<std::size_t>(std::countr_zero(word))];
        }
        taken_[w] = 0;
      }
    }
  }

 private:
  static constexpr std::size_t kLarge = 4;  // nodes of at least 1 / kLarge of all rows are large

  Ranks<Inputs>& ranks_;
  std::span<const std::int32_t> rows_;
  bool is_large_ = false;
  std::vector<char> inside_;          // for a large node: 1 for each training row in it, else 0
  std::vector<std::uint64_t> taken_;  // zero between sorts
  std::vector<std::int32_t> places_;
};

}  // namespace okforest
