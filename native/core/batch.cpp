#include "core/batch.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "core/dispatch.hpp"

namespace okforest {

namespace {

template <class T>
struct VectorsOf;
template <>
struct VectorsOf<float> {
  typedef float Values __attribute__((vector_size(64), aligned(64)));
  typedef std::int32_t Flags __attribute__((vector_size(64), aligned(64)));
  typedef std::uint32_t Bits __attribute__((vector_size(64), aligned(64)));
};
template <>
struct VectorsOf<double> {
  typedef double Values __attribute__((vector_size(64), aligned(64)));
  typedef std::int64_t Flags __attribute__((vector_size(64), aligned(64)));
  typedef std::uint64_t Bits __attribute__((vector_size(64), aligned(64)));
};

template <class T>
OKFOREST_INLINE void ranges_of(const T* lines, std::size_t n, T* low, T* high, void* missing) {
  using Values = typename VectorsOf<T>::Values;
  using Flags = typename VectorsOf<T>::Flags;
  const auto* values = reinterpret_cast<const Values*>(lines);
  Values least = Values{} + std::numeric_limits<T>::infinity();
  Values most = -least;
  Flags none = {};
  for (std::size_t k = 0; k < n; ++k) {
    const Values x = values[k];
    least = x < least ? x : least;
    most = x > most ? x : most;
    none |= x != x;
  }
  *reinterpret_cast<Values*>(low) = least;
  *reinterpret_cast<Values*>(high) = most;
  *reinterpret_cast<Flags*>(missing) = none;
}

// Compares each lane with its threshold: the results as bits of words, and the number of ones.
template <class T>
OKFOREST_INLINE void sides_of(const T* lines, std::size_t n, const T* thresholds, void* words,
                              void* counts) {
  using Values = typename VectorsOf<T>::Values;
  using Flags = typename VectorsOf<T>::Flags;
  using Bits = typename VectorsOf<T>::Bits;
  constexpr std::size_t bits = 8 * sizeof(T);
  const auto* values = reinterpret_cast<const Values*>(lines);
  const Values threshold = *reinterpret_cast<const Values*>(thresholds);
  auto* out = reinterpret_cast<Bits*>(words);
  Bits count = {};
  for (std::size_t begin = 0; begin < n; begin += bits) {
    Bits word = {};
    for (std::size_t k = std::min(n, begin + bits); k-- > begin;) {
      const Flags left = values[k] <= threshold;  // true is -1
      word = (word + word) - reinterpret_cast<const Bits&>(left);
      count -= reinterpret_cast<const Bits&>(left);
    }
    *out++ = word;
  }
  *reinterpret_cast<Bits*>(counts) = count;
}

// Lists the rows whose bit is set, or not set with `flip`. Words of a lane are a cache line apart.
// Four rows at a time, so that fewer loop exits are mispredicted.
template <class Word>
OKFOREST_INLINE std::size_t list_of(const Word* words, const std::int32_t* rows, std::size_t n,
                                    bool flip, std::int32_t* out) {
  constexpr std::size_t bits = 8 * sizeof(Word), width = 64 / sizeof(Word);
  const std::int32_t* const first = out;
  for (std::size_t begin = 0; begin < n; begin += 64) {
    std::uint64_t some = words[begin / bits * width];
    if constexpr (bits == 32) {
      some |= static_cast<std::uint64_t>(words[(begin / bits + 1) * width]) << 32;
    }
    if (flip) some = ~some;
    if (n - begin < 64) some &= (std::uint64_t{1} << (n - begin)) - 1;
    const int n_here = std::popcount(some);
    for (int k = 0; k < n_here; k += 4) {
      for (int j = 0; j < 4; ++j) {
        out[k + j] = rows[std::min<std::size_t>(begin + std::countr_zero(some), n - 1)];
        some &= some - 1;
      }
    }
    out += n_here;
  }
  return static_cast<std::size_t>(out - first);
}

typedef double Doubles __attribute__((vector_size(64), aligned(64)));
typedef std::int64_t Masks __attribute__((vector_size(64), aligned(64)));
typedef std::uint64_t Words __attribute__((vector_size(64), aligned(64)));
typedef float Floats __attribute__((vector_size(32), aligned(32)));
typedef std::int32_t Ints __attribute__((vector_size(32), aligned(32)));

OKFOREST_INLINE Doubles as_doubles(const double* x) { return *reinterpret_cast<const Doubles*>(x); }
OKFOREST_INLINE Doubles as_doubles(const float* x) {
  return __builtin_convertvector(*reinterpret_cast<const Floats*>(x), Doubles);
}

// Eight comparisons as ones and zeros.
OKFOREST_INLINE Doubles ones_where(const double* x, const double* threshold) {
  const Masks below =
      *reinterpret_cast<const Doubles*>(x) <= *reinterpret_cast<const Doubles*>(threshold);
  return below ? Doubles{} + 1.0 : Doubles{};
}
OKFOREST_INLINE Doubles ones_where(const float* x, const float* threshold) {
  const auto below =
      *reinterpret_cast<const Floats*>(x) <= *reinterpret_cast<const Floats*>(threshold);
  return -__builtin_convertvector(below, Doubles);
}

template <class T>
OKFOREST_INLINE void score_of(const T* lines, std::size_t n, const T* thresholds,
                              const double* gram, const double* weight, const double* count,
                              const Gain& gain, const T* low, const T* high, double* gains,
                              double* left_weights) {
  constexpr std::size_t width = 64 / sizeof(T), n_parts = width / 8;
  Doubles left[kSmallNode + 1][n_parts];
  Doubles norm[n_parts] = {}, total_weight[n_parts] = {}, total_count[n_parts] = {};
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t p = 0; p < n_parts; ++p) {
      left[k][p] = ones_where(lines + k * width + 8 * p, thresholds + 8 * p);
      total_weight[p] += left[k][p] * weight[k];
      total_count[p] += left[k][p] * count[k];
    }
  }
  for (std::size_t p = 0; p < n_parts; ++p) left[n][p] = Doubles{};
  // Two rows of the lower triangle at a time. Each adds to the norm twice its sum over the rows
  // before it, and its diagonal entry.
  for (std::size_t i = 0; i < n; i += 2) {
    const double* a = gram + i * n;
    const double* b = i + 1 < n ? a + n : a;
    Doubles sum_a[n_parts] = {}, sum_b[n_parts] = {};
    for (std::size_t j = 0; j < i; ++j) {
      for (std::size_t p = 0; p < n_parts; ++p) {
        sum_a[p] += a[j] * left[j][p];
        sum_b[p] += b[j] * left[j][p];
      }
    }
    const double across = b[i], own = i + 1 < n ? b[i + 1] : 0.0;
    for (std::size_t p = 0; p < n_parts; ++p) {
      norm[p] += left[i][p] * (sum_a[p] + sum_a[p] + a[i]);
      sum_b[p] += across * left[i][p];
      norm[p] += left[i + 1][p] * (sum_b[p] + sum_b[p] + own);
    }
  }
  for (std::size_t p = 0; p < n_parts; ++p) {
    const Doubles w = total_weight[p], n_left = total_count[p], n_right = gain.count - n_left;
    const Doubles smaller = n_left < n_right ? n_left : n_right;
    const Doubles a = as_doubles(low + 8 * p), b = as_doubles(high + 8 * p);
    const Doubles rows_to_spare = a < b ? smaller - gain.least_count : Doubles{} - 1.0;
    const Doubles positive = norm[p] > 0.0 ? norm[p] : Doubles{};
    const Doubles all = positive * gain.weight / (w * (gain.weight - w));
    reinterpret_cast<Doubles*>(gains)[p] = rows_to_spare < 0.0 ? Doubles{} + kNoGain : all;
    reinterpret_cast<Doubles*>(left_weights)[p] = w;
  }
}

// The largest T <= x: comparing a T with either gives the same result.
OKFOREST_INLINE void round_down(const Doubles& x, double* rounded) {
  *reinterpret_cast<Doubles*>(rounded) = x;
}
OKFOREST_INLINE void round_down(const Doubles& x, float* rounded) {
  const Floats nearest = __builtin_convertvector(x, Floats);
  typedef std::uint32_t Bits __attribute__((vector_size(32), aligned(32)));
  const Ints step = nearest > 0.0f ? Ints{} - 1 : Ints{} + 1;  // down by one ulp, in bits
  const Bits bits = std::bit_cast<Bits>(nearest) + std::bit_cast<Bits>(step);
  const Doubles near = __builtin_convertvector(nearest, Doubles);
  const Doubles below = __builtin_convertvector(std::bit_cast<Floats>(bits), Doubles);
  *reinterpret_cast<Floats*>(rounded) = __builtin_convertvector(near > x ? below : near, Floats);
}

// In each lane, uniform_between(low, high, stream.ahead(feature * stride).uniform()).
template <class T>
OKFOREST_INLINE void thresholds_of(Rng stream, std::uint64_t stride, const std::int32_t* features,
                                   const T* low, const T* high, double* thresholds, T* rounded) {
  for (std::size_t c = 0; c < 64 / sizeof(T); c += 8) {
    const Words feature =
        __builtin_convertvector(*reinterpret_cast<const Ints*>(features + c), Words);
    const Words bits = mix(feature * (stride * kGamma) + (stream.state() + kGamma)) >> 11;
    const Doubles u =
        __builtin_convertvector(reinterpret_cast<const Masks&>(bits), Doubles) * 0x1.0p-53;
    const Doubles a = as_doubles(low + c), b = as_doubles(high + c);
    const Doubles x = (1.0 - u) * a + u * b;
    const Doubles up = x >= a ? x : a, inside = up < b ? up : a;
    *reinterpret_cast<Doubles*>(thresholds + c) = inside;
    round_down(inside, rounded + c);
  }
}

// The compiler does not clone templates: each hot loop is a function per precision.
OKFOREST_CLONES void ranges(const float* lines, std::size_t n, float* low, float* high,
                            void* missing) {
  ranges_of(lines, n, low, high, missing);
}
OKFOREST_CLONES void ranges(const double* lines, std::size_t n, double* low, double* high,
                            void* missing) {
  ranges_of(lines, n, low, high, missing);
}
OKFOREST_CLONES void sides(const float* lines, std::size_t n, const float* thresholds, void* words,
                           void* counts) {
  sides_of(lines, n, thresholds, words, counts);
}
OKFOREST_CLONES void sides(const double* lines, std::size_t n, const double* thresholds,
                           void* words, void* counts) {
  sides_of(lines, n, thresholds, words, counts);
}
OKFOREST_CLONES std::size_t list(const std::uint32_t* words, const std::int32_t* rows,
                                 std::size_t n, bool flip, std::int32_t* out) {
  return list_of(words, rows, n, flip, out);
}
OKFOREST_CLONES std::size_t list(const std::uint64_t* words, const std::int32_t* rows,
                                 std::size_t n, bool flip, std::int32_t* out) {
  return list_of(words, rows, n, flip, out);
}

OKFOREST_CLONES void scores(const float* lines, std::size_t n, const float* thresholds,
                            const double* gram, const double* weight, const double* count,
                            const Gain& gain, const float* low, const float* high, double* gains,
                            double* left_weights) {
  score_of(lines, n, thresholds, gram, weight, count, gain, low, high, gains, left_weights);
}
OKFOREST_CLONES void scores(const double* lines, std::size_t n, const double* thresholds,
                            const double* gram, const double* weight, const double* count,
                            const Gain& gain, const double* low, const double* high, double* gains,
                            double* left_weights) {
  score_of(lines, n, thresholds, gram, weight, count, gain, low, high, gains, left_weights);
}

OKFOREST_CLONES void thresholds(Rng stream, std::uint64_t stride, const std::int32_t* features,
                                const float* low, const float* high, double* out, float* rounded) {
  thresholds_of(stream, stride, features, low, high, out, rounded);
}
OKFOREST_CLONES void thresholds(Rng stream, std::uint64_t stride, const std::int32_t* features,
                                const double* low, const double* high, double* out,
                                double* rounded) {
  thresholds_of(stream, stride, features, low, high, out, rounded);
}

}  // namespace

template <class T>
void Batch<T>::find_ranges() {
  ranges(lines_.data()->x, rows_.size(), low_.x, high_.x, missing_.x);
}

template <class T>
void Batch<T>::draw_thresholds(Rng stream, std::uint64_t stride,
                               std::span<const std::int32_t> features) {
  alignas(64) std::int32_t padded[width] = {};
  std::ranges::copy(features, padded);
  okforest::thresholds(stream, stride, padded, low_.x, high_.x, threshold_, rounded_.x);
}

template <class T>
void Batch<T>::score(const double* gram, const double* weight, const double* count,
                     const Gain& gain, Scores& out) const {
  scores(lines_.data()->x, rows_.size(), rounded_.x, gram, weight, count, gain, low_.x, high_.x,
         out.gain, out.left_weight);
}

template <class T>
void Batch<T>::cut() {
  if (words_.size() < n_words()) words_.resize(n_words());
  sides(lines_.data()->x, rows_.size(), rounded_.x, words_.data()->x, n_left_.x);
}

template <class T>
std::size_t Batch<T>::list(std::size_t c, bool left, std::int32_t* out) const {
  return okforest::list(&words_.data()->x[c], rows_.data(), rows_.size(), !left, out);
}

template class Batch<float>;
template class Batch<double>;

}  // namespace okforest
