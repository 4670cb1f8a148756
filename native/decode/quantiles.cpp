#include "decode/quantiles.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/parallel.hpp"

namespace okforest {

namespace {

constexpr std::int64_t kRowsOfTask = 64;

// The weights of one row by rank, and their sums.
class Sums {
 public:
  explicit Sums(std::size_t n) : values_(n, 0.0), used_((n + 63) / 64, 0) {}

  std::int64_t n_words() const { return std::ssize(used_); }

  void read(const RankedWeights& weights, std::int64_t i) {
    for (std::int64_t k = weights.offsets[i]; k < weights.offsets[i + 1]; ++k) {
      const auto rank = static_cast<std::size_t>(weights.ranks[weights.columns[k]]);
      values_[rank] += weights.values[k];
      used_[rank / 64] |= std::uint64_t{1} << (rank % 64);
    }
    places_.clear();
    sums_.clear();
    double sum = 0.0, largest = 0.0;
    for (std::size_t word = 0; word < used_.size(); ++word) {
      for (std::uint64_t bits = std::exchange(used_[word], 0); bits != 0; bits &= bits - 1) {
        const std::size_t rank = 64 * word + static_cast<std::size_t>(std::countr_zero(bits));
        sum += std::exchange(values_[rank], 0.0);
        largest = std::max(largest, sum);
        places_.push_back(static_cast<std::int32_t>(rank));
        sums_.push_back(largest);
      }
    }
  }

  // The first place whose share of the total is at least `level`.
  std::int32_t place(double level) const {
    const double total = sums_.empty() ? 0.0 : sums_.back();
    if (!(total > 0.0)) return place_of_equal(level);
    const auto reaches = [&](double sum) { return sum / total < level; };
    const auto found = std::partition_point(sums_.begin(), sums_.end(), reaches);
    return places_[std::min<std::ptrdiff_t>(found - sums_.begin(), std::ssize(sums_) - 1)];
  }

 private:
  std::int32_t place_of_equal(double level) const {
    const auto n = static_cast<double>(values_.size());
    std::int32_t low = 0, high = static_cast<std::int32_t>(values_.size()) - 1;
    while (low < high) {
      const std::int32_t middle = low + (high - low) / 2;
      if ((middle + 1.0) / n < level) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  std::vector<double> values_;
  std::vector<std::uint64_t> used_;  // a bit for each rank
  std::vector<std::int32_t> places_;
  std::vector<double> sums_;  // up to each place; they do not fall
};

}  // namespace

std::vector<std::int32_t> quantile_places(const RankedWeights& weights,
                                          std::span<const double> levels, int n_threads,
                                          Watch& watch) {
  const std::int64_t n = weights.n_rows();
  const auto n_levels = static_cast<std::int64_t>(levels.size());
  std::vector<std::int32_t> places(static_cast<std::size_t>(n * n_levels));
  const auto find = [&](std::int64_t begin, std::int64_t end, Pace& pace) {
    Sums sums(weights.ranks.size());
    for (std::int64_t i = begin; i < end; ++i) {
      sums.read(weights, i);
      for (std::int64_t l = 0; l < n_levels; ++l) places[i * n_levels + l] = sums.place(levels[l]);
      pace.advance(weights.offsets[i + 1] - weights.offsets[i] + sums.n_words());
    }
  };
  parallel_blocks(n, kRowsOfTask, n_threads, watch, find);
  return places;
}

}  // namespace okforest
