// The kernels of random cuts; see CutKernels. A part of kernels.cpp.
#pragma once

#include <limits>
#include <type_traits>

#include "core/kernels.hpp"
#include "core/simd.hpp"

namespace okforest::OKFOREST_LEVEL {

namespace {

constexpr int kWidth = kCutWidth;

template <class T>
using Lanes = Pack<T, kWidth>;
using Doubles = Pack<double, 8>;
using Floats = Pack<float, 16>;

// Values other than NaN are finite; bytes are never missing.
template <class Stored, class T>
bool ranges(const Stored* lines, std::size_t n, T* low, T* high, bool* missing) {
  auto least = fill<Stored, kWidth>(std::numeric_limits<Stored>::max());
  auto most = fill<Stored, kWidth>(std::numeric_limits<Stored>::lowest());
  auto sum = fill<T, kWidth>(0);
  for (std::size_t k = 0; k < n; ++k) {
    const auto x = load<Stored, kWidth>(lines + k * kWidth);
    least = smaller(x, least);
    most = larger(x, most);
    if constexpr (std::is_same_v<Stored, T>) sum = sum + x * fill<T, kWidth>(0);  // NaN if x is
  }
  T sums[kWidth];
  store(convert<T>(least), low);
  store(convert<T>(most), high);
  store(sum, sums);
  const T all = total(sum);
  if (all == all) return false;
  for (int c = 0; c < kWidth; ++c) missing[c] = sums[c] != sums[c];
  return true;
}

// The largest T <= x.
OKFOREST_INLINE Doubles round_down(const Doubles& x, double) { return x; }
OKFOREST_INLINE Pack<float, 8> round_down(const Doubles& x, float) {
  const auto next_below = [](auto v) OKFOREST_LAMBDA {
    const auto bits = std::bit_cast<decltype(v < v)>(v);
    return std::bit_cast<decltype(v)>(bits + (1 + 2 * (v > 0.0f)));  // by one unit; true is -1
  };
  const auto nearest = convert<float>(x), below = each<float>(next_below, nearest);
  return convert<float>(select_at_most(widen(nearest), x, widen(nearest), widen(below)));
}

template <class T>
void thresholds(Rng stream, std::uint64_t stride, const std::int32_t* features, const T* low,
                const T* high, double* thresholds, T* rounded) {
  for (int c = 0; c < kWidth; c += 8) {
    std::uint64_t numbers[8];
    for (int k = 0; k < 8; ++k) {
      const auto feature = static_cast<std::uint64_t>(features[c + k]);
      numbers[k] = stream.state() + kGamma + feature * (stride * kGamma);
    }
    // The upper 53 bits, in two parts that fit 32-bit integers, which every level can convert.
    const auto bits = each<std::uint64_t>([](auto v) OKFOREST_LAMBDA { return mix(v) >> 11; },
                                          load<std::uint64_t, 8>(numbers));
    const auto upper = each<std::uint64_t>([](auto v) OKFOREST_LAMBDA { return v >> 27; }, bits);
    const auto lower =
        each<std::uint64_t>([](auto v) OKFOREST_LAMBDA { return v & 0x7ffffffULL; }, bits);
    const Doubles u = widen(convert<std::int32_t>(upper)) * fill<double, 8>(0x1.0p-26) +
                      widen(convert<std::int32_t>(lower)) * fill<double, 8>(0x1.0p-53);
    const Doubles a = widen(load<T, 8>(low + c)), b = widen(load<T, 8>(high + c));
    const Doubles x = (fill<double, 8>(1.0) - u) * a + u * b;
    const Doubles up = select_at_most(a, x, x, a), inside = select_at_most(b, up, a, up);
    store(inside, thresholds + c);
    store(round_down(inside, T{}), rounded + c);
  }
}

template <class T>
void present_weights(const T* lines, std::size_t n, const T* thresholds, const double* weights,
                     double* left, double* present) {
  const auto threshold = load<T, kWidth>(thresholds);
  const auto one = fill<T, kWidth>(1), none = fill<T, kWidth>(0);
  auto of_left = fill<double, kWidth>(0.0), of_present = of_left;
  for (std::size_t k = 0; k < n; ++k) {
    const auto weight = fill<double, kWidth>(weights == nullptr ? 1.0 : weights[k]);
    const auto x = load<T, kWidth>(lines + k * kWidth);
    of_left = of_left + weight * widen(select_at_most(x, threshold, one, none));
    of_present = of_present + weight * widen(select_at_most(x, x, one, none));
  }
  store(of_left, left);
  store(of_present, present);
}

template <class T>
void fill_missing(T* lines, std::size_t n, const T* values) {
  const auto value = load<T, kWidth>(values);
  for (std::size_t k = 0; k < n; ++k) {
    const auto x = load<T, kWidth>(lines + k * kWidth);
    store(select_at_most(x, x, x, value), lines + k * kWidth);
  }
}

template <class T>
void sides(const T* lines, std::size_t n, const T* thresholds, typename CutKernels<T>::Word* words,
           std::int64_t* n_left) {
  using Word = typename CutKernels<T>::Word;
  constexpr std::size_t bits = 8 * sizeof(Word);
  const auto threshold = load<T, kWidth>(thresholds);
  auto count = fill<Word, kWidth>(0);
  for (std::size_t begin = 0; begin < n; begin += bits, words += kWidth) {
    auto word = fill<Word, kWidth>(0);
    for (std::size_t k = n < begin + bits ? n : begin + bits; k-- > begin;) {
      // A comparison that holds is -1.
      const auto left = at_most(load<T, kWidth>(lines + k * kWidth), threshold);
      word = word + word - left;
      count = count - left;
    }
    store(word, words);
  }
  Word counts[kWidth];
  store(count, counts);
  for (int c = 0; c < kWidth; ++c) n_left[c] = static_cast<std::int64_t>(counts[c]);
}

template <class T>
void places(const T* lines, std::size_t n, typename CutKernels<T>::Word* places) {
  using Word = typename CutKernels<T>::Word;
  for (std::size_t k = 0; k < n; ++k) {
    const auto x = load<T, kWidth>(lines + k * kWidth);
    // All later rows are assumed to come before row k. Those that are not smaller are subtracted
    // when they are reached.
    auto place = fill<Word, kWidth>(static_cast<Word>(n - 1 - k));
    for (std::size_t l = 0; l < k; ++l) {
      const auto first = at_most(load<T, kWidth>(lines + l * kWidth), x);  // -1 or 0
      store(load<Word, kWidth>(places + l * kWidth) + first, places + l * kWidth);
      place = place - first;
    }
    store(place, places + k * kWidth);
  }
}

// Four rows at a time, so that fewer loop exits are mispredicted.
template <class Word>
std::size_t list(const Word* words, const std::int32_t* rows, std::size_t n, bool flip,
                 std::int32_t* out, std::int32_t* block_ends) {
  constexpr std::size_t bits = 8 * sizeof(Word);
  const std::int32_t* const first = out;
  for (std::size_t begin = 0; begin < n; begin += 64) {
    std::uint64_t some = words[begin / bits * kWidth];
    if constexpr (bits == 32) {
      if (begin + 32 < n) {
        some |= static_cast<std::uint64_t>(words[(begin / bits + 1) * kWidth]) << 32;
      }
    }
    if (flip) some = ~some;
    if (n - begin < 64) some &= (std::uint64_t{1} << (n - begin)) - 1;
    const int n_here = __builtin_popcountll(some);
    for (int k = 0; k < n_here; k += 4) {
      for (int j = 0; j < 4; ++j) {
        const auto at = begin + static_cast<std::size_t>(some ? __builtin_ctzll(some) : 0);
        out[k + j] = rows[at];
        some &= some - 1;
      }
    }
    out += n_here;
    if ((begin + 64) % kRowBlock == 0 || begin + 64 >= n) {
      *block_ends++ = static_cast<std::int32_t>(out - first);
    }
  }
  return static_cast<std::size_t>(out - first);
}

// The weights and counts of the rows on both sides of all cuts. If rows are not all of weight one,
// both weights are summed: the weight of a light side has no digits left as a difference.
template <bool counted>
struct SideWeights {
  Lanes<double> left = fill<double, kWidth>(0.0), right = left, left_count = left;

  // Adds a row, given ones where it is on the left.
  OKFOREST_INLINE void add(const Lanes<double>& ones, const RowWeights& rows, std::size_t k) {
    if constexpr (counted) {
      const auto weight = fill<double, kWidth>(rows.weight[k]);
      left = left + ones * weight;
      right = right + (fill<double, kWidth>(1.0) - ones) * weight;
      left_count = left_count + ones * fill<double, kWidth>(rows.count[k]);
    } else {
      left = left + ones;
    }
  }
  OKFOREST_INLINE void finish(const Gain& gain) {
    if constexpr (counted) return;
    right = fill<double, kWidth>(gain.weight) - left;
    left_count = left;
  }
};

template <bool counted, class Stored, class T>
OKFOREST_INLINE void store_gains(const Lanes<double>& norm, const SideWeights<counted>& sides,
                                 const Gain& gain, const CutLines<Stored, T>& cuts,
                                 const CutGains& gains) {
  const auto all = fill<double, kWidth>(gain.weight);
  const auto lighter = smaller(sides.left, sides.right);
  const auto right_count = fill<double, kWidth>(gain.count) - sides.left_count;
  const auto none = fill<double, kWidth>(kNoGain);
  auto value = larger(norm, fill<double, kWidth>(0.0)) * all / (lighter * (all - lighter));
  value = select_at_most(fill<double, kWidth>(gain.least_count),
                         smaller(sides.left_count, right_count), value, none);
  const auto low = widen(load<T, kWidth>(cuts.low)), high = widen(load<T, kWidth>(cuts.high));
  store(select_at_most(high, low, none, value), gains.gain);
  store(sides.left, gains.left_weight);
}

// A function of a row: one for each cut that has it on its left, else zero.
template <class Count = double, class Stored, class T>
OKFOREST_INLINE auto ones_on_left(const CutLines<Stored, T>& cuts) {
  // A byte is at most a threshold if it is at most its whole part.
  const auto threshold = convert<Stored>(load<T, kWidth>(cuts.threshold));
  return [lines = cuts.lines, threshold](std::size_t row) OKFOREST_LAMBDA {
    const auto one = fill<Stored, kWidth>(1), zero = fill<Stored, kWidth>(0);
    const auto x = load<Stored, kWidth>(lines + row * kWidth);
    return convert<Count>(select_at_most(x, threshold, one, zero));
  };
}

// If weights differ, sums over the lighter side of each cut: around the node's mean, the sums of
// the two sides are opposite, and the rounding errors of the lighter one's are smaller.
template <class T>
void small_gains(const CutLines<T>& cuts, const SmallGram& gram, const RowWeights& rows,
                 const Gain& gain, const CutGains& gains) {
  constexpr auto constant = [](double x) OKFOREST_LAMBDA { return fill<double, kWidth>(x); };
  with_constant(rows.counted(), [&](auto counted) OKFOREST_LAMBDA {
    const std::size_t n = cuts.n;
    alignas(64) double in_side[kSmallNode * kWidth];  // the weight of a row there, or zero
    SideWeights<counted> sides;
    const auto on_left = ones_on_left(cuts);
    for (std::size_t k = 0; k < n; ++k) {
      const auto left = on_left(k);
      store(left, in_side + k * kWidth);
      sides.add(left, rows, k);
    }
    sides.finish(gain);
    auto weight = sides.left;
    if constexpr (counted) {
      const auto flip = select_at_most(sides.left, sides.right, constant(0.0), constant(1.0));
      const auto sign = constant(1.0) - flip - flip;
      for (std::size_t k = 0; k < n; ++k) {
        const auto in = flip + sign * load<double, kWidth>(in_side + k * kWidth);
        store(constant(rows.weight[k]) * in, in_side + k * kWidth);
      }
      weight = smaller(sides.left, sides.right);
    }
    // Each row adds to the norm twice its sum over the rows before it, and its square.
    auto norm = constant(0.0), reach = constant(0.0);
    for (std::size_t i = 0; i < n; ++i) {
      const double* const row = gram.row(i);
      auto sum = constant(0.0);
      for (std::size_t j = 0; j < i; ++j) {
        sum = sum + constant(row[gram.place[j]]) * load<double, kWidth>(in_side + j * kWidth);
      }
      const auto in = load<double, kWidth>(in_side + i * kWidth);
      norm = norm + in * (sum + sum + constant(row[gram.place[i]]) * in);
      reach = reach + in * constant(gram.reach[i]);
    }
    norm = norm - weight * (reach + reach - weight * constant(gram.mean_norm));
    store_gains(norm, sides, gain, cuts, gains);
  });
}

// The same for nodes of any size with a single output, given w_i (y_i - mean).
template <class T>
void scalar_gains(const CutLines<T>& cuts, const double* values, const RowWeights& rows,
                  const Gain& gain, const CutGains& gains) {
  with_constant(rows.counted(), [&](auto counted) OKFOREST_LAMBDA {
    auto sum = fill<double, kWidth>(0.0), of_right = sum;
    SideWeights<counted> sides;
    const auto on_left = ones_on_left(cuts);
    for (std::size_t k = 0; k < cuts.n; ++k) {
      const auto left = on_left(k), value = fill<double, kWidth>(values[k]);
      sum = sum + left * value;
      if constexpr (counted) of_right = of_right + (fill<double, kWidth>(1.0) - left) * value;
      sides.add(left, rows, k);
    }
    sides.finish(gain);
    if constexpr (counted) sum = select_at_most(sides.left, sides.right, sum, of_right);
    store_gains(sum * sum, sides, gain, cuts, gains);
  });
}

// For classes: the weight of each class on the left, for all cuts. If all rows have weight one,
// they are counted in integers.
template <class Stored, class T>
void class_gains(const CutLines<Stored, T>& cuts, const std::int32_t* classes,
                 std::span<const double> shares, const RowWeights& rows, const Gain& gain,
                 double* scratch, const CutGains& gains) {
  with_constant(rows.counted(), [&](auto counted) OKFOREST_LAMBDA {
    using Count = std::conditional_t<counted, double, std::int32_t>;
    Count* const counts = reinterpret_cast<Count*>(scratch);
    const auto of_class = [&](std::size_t c)
                              OKFOREST_LAMBDA { return load<Count, kWidth>(counts + c * kWidth); };
    auto all = fill<Count, kWidth>(0);
    SideWeights<counted> sides;
    const auto on_left = ones_on_left<Count>(cuts);
    for (std::size_t c = 0; c < shares.size(); ++c) store(all, counts + c * kWidth);
    for (std::size_t k = 0; k < cuts.n; ++k) {
      const auto c = static_cast<std::size_t>(classes[k]);
      auto left = on_left(k);
      if constexpr (counted) {
        sides.add(left, rows, k);
        left = left * fill<double, kWidth>(rows.weight[k]);
      }
      store(of_class(c) + left, counts + c * kWidth);
    }
    if constexpr (!counted) {
      for (std::size_t c = 0; c < shares.size(); ++c) all = all + of_class(c);
      sides.left = widen(all);
    }
    sides.finish(gain);
    auto norm = fill<double, kWidth>(0.0);
    for (std::size_t c = 0; c < shares.size(); ++c) {
      const auto centred = widen(of_class(c)) - sides.left * fill<double, kWidth>(shares[c]);
      norm = norm + centred * centred;
    }
    if constexpr (counted) {
      // Two indicators are at most sqrt(2) apart, which bounds the errors of very light sides.
      const auto lighter = smaller(sides.left, sides.right);
      norm = smaller(norm, fill<double, kWidth>(2.0) * lighter * lighter);
    }
    store_gains(norm, sides, gain, cuts, gains);
  });
}

template <class Stored, class T = Stored>
constexpr LineKernels<Stored, T> line_kernels() {
  return {ranges<Stored, T>, class_gains<Stored, T>};
}

template <class T>
constexpr CutKernels<T> cut_kernels() {
  return {line_kernels<T>(),
          thresholds<T>,
          present_weights<T>,
          fill_missing<T>,
          sides<T>,
          places<T>,
          list<typename CutKernels<T>::Word>,
          small_gains<T>,
          scalar_gains<T>};
}

}  // namespace

}  // namespace okforest::OKFOREST_LEVEL
