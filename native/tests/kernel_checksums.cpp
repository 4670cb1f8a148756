// Prints a checksum of the results of each kernel, for every level that the machine can run: all
// lines must be equal, on every processor. See `make cross`.
#include <bit>
#include <cstdio>
#include <cstring>
#include <vector>

#include "core/kernels.hpp"

namespace okforest {

namespace {

Rng rng(7);

template <class T>
std::vector<T> random_numbers(std::size_t n) {
  std::vector<T> numbers(n);
  for (T& x : numbers) x = static_cast<T>(2.0 * rng.uniform() - 1.0);
  return numbers;
}

class Checksum {
 public:
  template <class T>
  void add(const T* data, std::size_t n) {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(data);
    for (std::size_t k = 0; k < n * sizeof(T); ++k) sum_ = mix(sum_ ^ bytes[k]);
  }
  unsigned long long value() const { return sum_; }

 private:
  std::uint64_t sum_ = 0;
};

template <class T>
void add_cuts(const Kernels& level, Checksum& sum) {
  constexpr std::size_t n = 29;
  const CutKernels<T>& cuts = level.cuts<T>();
  const auto lines = random_numbers<T>(n * kCutWidth);
  const auto exact = random_numbers<double>(n * n);
  const auto values = random_numbers<double>(n);
  std::vector<double> weight(n), count(n, 1.0);
  double total = 0.0;
  for (auto& w : weight) total += w = 0.5 + rng.uniform();
  std::int32_t features[kCutWidth];
  for (std::size_t c = 0; c < kCutWidth; ++c) features[c] = static_cast<std::int32_t>(3 * c);
  alignas(64) T low[kCutWidth], high[kCutWidth], rounded[kCutWidth];
  alignas(64) double thresholds[kCutWidth];
  alignas(64) double gain_of[kCutWidth], left_weight[kCutWidth];
  const CutGains gains{gain_of, left_weight};
  bool missing[kCutWidth];
  cuts.ranges(lines.data(), n, low, high, missing);
  cuts.thresholds(Rng(11), 4096, features, low, high, thresholds, rounded);
  sum.add(thresholds, kCutWidth);
  sum.add(rounded, kCutWidth);
  std::vector<typename CutKernels<T>::Word> places(n * kCutWidth);
  cuts.places(lines.data(), n, places.data());
  sum.add(places.data(), places.size());
  const Gain gain{total, static_cast<double>(n), 2.0};
  const CutLines<T> cut{lines.data(), n, rounded, low, high};
  const RowWeights rows{weight.data(), count.data()};
  SmallGram gram{exact.data(), static_cast<std::int64_t>(n), {}, {}, 0.25};
  for (std::size_t k = 0; k < n; ++k) {
    gram.place[k] = static_cast<std::int32_t>(n - 1 - k);
    gram.reach[k] = values[k];
  }
  cuts.small_gains(cut, gram, rows, gain, gains);
  sum.add(gains.gain, kCutWidth);
  cuts.scalar_gains(cut, values.data(), rows, gain, gains);
  sum.add(gains.gain, kCutWidth);
  sum.add(gains.left_weight, kCutWidth);
  std::vector<std::int32_t> classes(n);
  for (std::size_t k = 0; k < n; ++k) classes[k] = static_cast<std::int32_t>(k % 3);
  std::vector<double> counts(3 * kCutWidth);
  cuts.class_gains(cut, classes.data(), std::span(values).first(3), rows, gain, counts.data(),
                   gains);
  sum.add(gains.gain, kCutWidth);
  sum.add(gains.left_weight, kCutWidth);
}

void add_byte_cuts(const Kernels& level, Checksum& sum) {
  constexpr std::size_t n = 1000;
  std::vector<std::uint8_t> lines(n * kCutWidth);
  for (auto& x : lines) x = static_cast<std::uint8_t>(rng.below(256));
  alignas(64) float low[kCutWidth], high[kCutWidth];
  bool missing[kCutWidth];
  level.byte_cuts.ranges(lines.data(), n, low, high, missing);
  sum.add(low, kCutWidth);
  sum.add(high, kCutWidth);
  std::vector<float> thresholds(kCutWidth);
  for (auto& x : thresholds) x = static_cast<float>(255.0 * rng.uniform());
  std::vector<std::int32_t> classes(n);
  for (std::size_t k = 0; k < n; ++k) classes[k] = static_cast<std::int32_t>(k % 3);
  const std::vector<double> shares{0.334, 0.333, 0.333};
  std::vector<double> weight(n, 1.0), counts(3 * kCutWidth);
  alignas(64) double gain_of[kCutWidth], left_weight[kCutWidth];
  const CutGains gains{gain_of, left_weight};
  const Gain gain{static_cast<double>(n), static_cast<double>(n), 2.0};
  level.byte_cuts.class_gains({lines.data(), n, thresholds.data(), low, high}, classes.data(),
                              shares, {weight.data(), weight.data()}, gain, counts.data(), gains);
  sum.add(gains.gain, kCutWidth);
  sum.add(gains.left_weight, kCutWidth);
}

void add_outputs(const Kernels& level, Checksum& sum) {
  constexpr std::int64_t n = 40, n_cols = 72, n_packs = 5;
  const auto phi = random_numbers<double>(n * n_cols);
  const auto floats = random_numbers<float>(n * n_packs * 16);
  const auto mean = random_numbers<double>(n_cols);
  const auto float_mean = random_numbers<float>(n_packs * 16);
  const auto weight = random_numbers<double>(n);
  std::vector<std::int32_t> rows(n), lengths;
  for (std::int32_t k = 0; k < n; ++k) rows[k] = (k * 7) % n;
  for (std::int32_t k = 1; k <= n; ++k) lengths.push_back(k);
  std::vector<double> out(n * n);
  level.prefix_norms(phi.data(), n_cols, rows, lengths, weight.data(), mean.data(), out.data());
  sum.add(out.data(), n);
  level.sum_rows(phi.data(), n_cols, rows, weight.data(), out.data());
  sum.add(out.data(), n_cols);
  level.gram(phi.data(), n, n_cols, out.data());
  sum.add(out.data(), n * n);
  const std::int32_t ends[] = {n};
  const Side side{rows, ends, 3.5};
  SideSum sums;
  level.side_norms({floats.data(), n, n_packs}, rows, {&side, 1}, nullptr, float_mean.data(), &sums,
                   out.data());
  sum.add(out.data(), 1);
  const auto row = random_numbers<float>(64), rank = random_numbers<float>(64);
  const float* const ranks[] = {rank.data(), row.data(), rank.data(), row.data()};
  for (const auto sums_before : level.sums_before) {
    sums_before(row.data(), ranks, 5, 64, out.data());
    sum.add(out.data(), 4);
  }
  // A block of 21 rows: whole tiles, and what is left of them.
  level.gram(phi.data(), n, n_cols, out.data());
  const std::vector<std::int32_t> places = {0,  1,  2,  5,  7,  8,  11, 13, 14, 17, 18,
                                            20, 21, 25, 26, 28, 31, 33, 36, 38, 39};
  const auto n_places = static_cast<std::int64_t>(places.size());
  std::vector<double> block(places.size() * places.size());
  std::vector<float> panels(places.size() * GramPanels::width);
  level.copy_block(out.data(), n, places, block.data(), panels.data());
  sum.add(block.data(), block.size());
  const std::int32_t listed[] = {1, 4, 6, 9, 12, 20}, starts[] = {0, 6};
  const PanelRows of_side{listed, starts};
  const auto float_weight = random_numbers<float>(places.size());
  double norm = 0.0;
  level.pair_sums({panels.data(), n_places}, {&of_side, 1}, float_weight.data(), &norm);
  sum.add(&norm, 1);
  const std::vector<std::int32_t> leaves(n, 1);
  level.subtract_both(out.data(), n, phi.data(), leaves.data(), 0, n, block.data());
  sum.add(out.data(), n * n);
  sum.add(block.data(), n);
  const double distance = level.squared_distance(phi.data(), mean.data(), 0.3, 71);
  sum.add(&distance, 1);
}

}  // namespace

}  // namespace okforest

int main() {
  using namespace okforest;
  for (const char* level : {"baseline", "avx2", "avx512"}) {
    if (!choose_kernels(level)) continue;
    rng = Rng(7);
    Checksum sum;
    add_cuts<float>(kernels(), sum);
    add_cuts<double>(kernels(), sum);
    add_byte_cuts(kernels(), sum);
    add_outputs(kernels(), sum);
    std::printf("%016llx\n", sum.value());
  }
}
