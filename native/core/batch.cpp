#include "core/batch.hpp"

#include <algorithm>
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
};
template <>
struct VectorsOf<double> {
  typedef double Values __attribute__((vector_size(64), aligned(64)));
  typedef std::int64_t Flags __attribute__((vector_size(64), aligned(64)));
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

// Each lane's comparisons with its threshold, as the bits of a word.
template <class T>
OKFOREST_INLINE void sides_of(const T* lines, std::size_t n, const T* thresholds, void* words) {
  using Values = typename VectorsOf<T>::Values;
  using Flags = typename VectorsOf<T>::Flags;
  constexpr std::size_t bits = 8 * sizeof(T);
  const auto* values = reinterpret_cast<const Values*>(lines);
  const Values threshold = *reinterpret_cast<const Values*>(thresholds);
  auto* out = reinterpret_cast<Flags*>(words);
  for (std::size_t begin = 0; begin < n; begin += bits) {
    Flags word = {};
    for (std::size_t k = std::min(n, begin + bits); k-- > begin;) {
      word = (word + word) - (values[k] <= threshold);  // true is -1
    }
    *out++ = word;
  }
}

typedef double Doubles __attribute__((vector_size(64), aligned(64)));
typedef std::int64_t Masks __attribute__((vector_size(64), aligned(64)));
typedef std::uint64_t Words __attribute__((vector_size(64), aligned(64)));
typedef float Floats __attribute__((vector_size(32), aligned(32)));
typedef std::int32_t Ints __attribute__((vector_size(32), aligned(32)));

// Eight comparisons as ones and zeros.
OKFOREST_INLINE Doubles ones_where(const double* x, const double* threshold) {
  const Masks below =
      *reinterpret_cast<const Doubles*>(x) <= *reinterpret_cast<const Doubles*>(threshold);
  return below ? Doubles{} + 1.0 : Doubles{};
}
OKFOREST_INLINE Doubles ones_where(const float* x, const float* threshold) {
  typedef float Floats __attribute__((vector_size(32), aligned(32)));
  const auto below =
      *reinterpret_cast<const Floats*>(x) <= *reinterpret_cast<const Floats*>(threshold);
  return -__builtin_convertvector(below, Doubles);
}

template <class T>
OKFOREST_INLINE void score_of(const T* lines, std::size_t n, const T* thresholds,
                              const double* gram, const double* weight, const double* count,
                              double* norms, double* weights, double* counts) {
  constexpr std::size_t width = 64 / sizeof(T), n_parts = width / 8;
  Doubles left[kFew + 1][n_parts];
  Doubles norm[n_parts] = {}, total_weight[n_parts] = {}, total_count[n_parts] = {};
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t p = 0; p < n_parts; ++p) {
      left[k][p] = ones_where(lines + k * width + 8 * p, thresholds + 8 * p);
      total_weight[p] += left[k][p] * weight[k];
      total_count[p] += left[k][p] * count[k];
    }
  }
  for (std::size_t p = 0; p < n_parts; ++p) left[n][p] = Doubles{};
  // Two rows of the matrix at a time, up to the diagonal: what they add to the norm is twice their
  // sums over the rows before, and their own entries.
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
    reinterpret_cast<Doubles*>(norms)[p] = norm[p];
    reinterpret_cast<Doubles*>(weights)[p] = total_weight[p];
    reinterpret_cast<Doubles*>(counts)[p] = total_count[p];
  }
}

// The largest values of type T that are not above x: of all T, the same ones are up to it.
OKFOREST_INLINE void round_down(const Doubles& x, double* rounded) {
  *reinterpret_cast<Doubles*>(rounded) = x;
}
OKFOREST_INLINE void round_down(const Doubles& x, float* rounded) {
  const Floats nearest = __builtin_convertvector(x, Floats);
  const Ints above = __builtin_convertvector(__builtin_convertvector(nearest, Doubles) > x, Ints);
  const Ints step = (nearest > 0.0f) - (nearest <= 0.0f);  // one down, by the bits; true is -1
  const Ints bits = reinterpret_cast<const Ints&>(nearest) + (step & above);
  *reinterpret_cast<Floats*>(rounded) = reinterpret_cast<const Floats&>(bits);
}

OKFOREST_INLINE Doubles as_doubles(const double* x) { return *reinterpret_cast<const Doubles*>(x); }
OKFOREST_INLINE Doubles as_doubles(const float* x) {
  return __builtin_convertvector(*reinterpret_cast<const Floats*>(x), Doubles);
}

// Lane by lane, what uniform_between(low, high, Rng(state).uniform()) would be.
template <class T>
OKFOREST_INLINE void thresholds_of(const std::uint64_t* state, const T* low, const T* high,
                                   double* thresholds, T* rounded) {
  for (std::size_t c = 0; c < 64 / sizeof(T); c += 8) {
    const Words bits = mix(*reinterpret_cast<const Words*>(state + c) + kGamma) >> 11;
    const Doubles u =
        __builtin_convertvector(reinterpret_cast<const Masks&>(bits), Doubles) * 0x1.0p-53;
    const Doubles a = as_doubles(low + c), b = as_doubles(high + c);
    const Doubles x = (1.0 - u) * a + u * b;
    const Doubles inside = (x >= a) & (x < b) ? x : a;
    *reinterpret_cast<Doubles*>(thresholds + c) = inside;
    round_down(inside, rounded + c);
  }
}

// Templates cannot be cloned, so each hot loop is named once per precision.
OKFOREST_CLONES void ranges(const float* lines, std::size_t n, float* low, float* high,
                            void* missing) {
  ranges_of(lines, n, low, high, missing);
}
OKFOREST_CLONES void ranges(const double* lines, std::size_t n, double* low, double* high,
                            void* missing) {
  ranges_of(lines, n, low, high, missing);
}
OKFOREST_CLONES void sides(const float* lines, std::size_t n, const float* thresholds,
                           void* words) {
  sides_of(lines, n, thresholds, words);
}
OKFOREST_CLONES void sides(const double* lines, std::size_t n, const double* thresholds,
                           void* words) {
  sides_of(lines, n, thresholds, words);
}

OKFOREST_CLONES void scores(const float* lines, std::size_t n, const float* thresholds,
                            const double* gram, const double* weight, const double* count,
                            double* norms, double* weights, double* counts) {
  score_of(lines, n, thresholds, gram, weight, count, norms, weights, counts);
}
OKFOREST_CLONES void scores(const double* lines, std::size_t n, const double* thresholds,
                            const double* gram, const double* weight, const double* count,
                            double* norms, double* weights, double* counts) {
  score_of(lines, n, thresholds, gram, weight, count, norms, weights, counts);
}

OKFOREST_CLONES void thresholds(const std::uint64_t* state, const float* low, const float* high,
                                double* out, float* rounded) {
  thresholds_of(state, low, high, out, rounded);
}
OKFOREST_CLONES void thresholds(const std::uint64_t* state, const double* low, const double* high,
                                double* out, double* rounded) {
  thresholds_of(state, low, high, out, rounded);
}

}  // namespace

template <class T>
void Batch<T>::find_ranges() {
  ranges(lines_.data()->x, rows_.size(), low_.x, high_.x, missing_.x);
}

template <class T>
void Batch<T>::draw_thresholds(Rng stream, std::uint64_t stride,
                               std::span<const std::int32_t> features) {
  alignas(64) std::uint64_t state[width] = {};
  for (std::size_t c = 0; c < features.size(); ++c) {
    state[c] = stream.ahead(static_cast<std::uint64_t>(features[c]) * stride).state();
  }
  thresholds(state, low_.x, high_.x, threshold_, rounded_.x);
}

template <class T>
void Batch<T>::score(const double* gram, const double* weight, const double* count,
                     Sides& left) const {
  scores(lines_.data()->x, rows_.size(), rounded_.x, gram, weight, count, left.norm, left.weight,
         left.count);
}

template <class T>
void Batch<T>::cut() {
  if (words_.size() < n_words()) words_.resize(n_words());
  sides(lines_.data()->x, rows_.size(), rounded_.x, words_.data()->x);
}

template class Batch<float>;
template class Batch<double>;

}  // namespace okforest
