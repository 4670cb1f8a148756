// SIMD vectors. Hot loops are written once, for packs of 8 doubles or 16 floats, and compiled once
// per instruction set. Every instruction set adds in the same order and rounds in the same way, so
// that results are the same to the last bit.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#define OKFOREST_INLINE inline __attribute__((always_inline))
#define OKFOREST_LAMBDA __attribute__((always_inline))

namespace okforest {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

namespace OKFOREST_LEVEL {

// n numbers of type T: one native vector, or two halves.
template <class T, int n, bool native = (n * sizeof(T) <= kVectorBytes)>
struct Pack {
  Pack<T, n / 2> low, high;
};

template <class T, int n>
struct Pack<T, n, true> {
  typedef T Vector __attribute__((vector_size(n * sizeof(T))));
  typedef T Unaligned __attribute__((vector_size(n * sizeof(T)), aligned(alignof(T)), may_alias));
  Vector v;
};

template <class T, int n>
inline constexpr bool is_native = (n * sizeof(T) <= kVectorBytes);

template <class T, int n>
OKFOREST_INLINE Pack<T, n> fill(T x) {
  if constexpr (is_native<T, n>) {
    return {typename Pack<T, n>::Vector{} + x};
  } else {
    return {fill<T, n / 2>(x), fill<T, n / 2>(x)};
  }
}

template <class T, int n>
OKFOREST_INLINE Pack<T, n> load(const T* from) {
  if constexpr (is_native<T, n>) {
    return {*reinterpret_cast<const typename Pack<T, n>::Unaligned*>(from)};
  } else {
    return {load<T, n / 2>(from), load<T, n / 2>(from + n / 2)};
  }
}

template <class T, int n>
OKFOREST_INLINE void store(const Pack<T, n>& x, T* to) {
  if constexpr (is_native<T, n>) {
    *reinterpret_cast<typename Pack<T, n>::Unaligned*>(to) = x.v;
  } else {
    store(x.low, to);
    store(x.high, to + n / 2);
  }
}

// Applies an operation on native vectors to packs of the same length.
template <class T, int n, class F>
OKFOREST_INLINE Pack<T, n> each(const Pack<T, n>& a, const Pack<T, n>& b, F&& f) {
  if constexpr (is_native<T, n>) {
    return {f(a.v, b.v)};
  } else {
    return {each(a.low, b.low, f), each(a.high, b.high, f)};
  }
}

#define OKFOREST_OPERATOR(symbol)                                                 \
  template <class T, int n>                                                       \
  OKFOREST_INLINE Pack<T, n> operator symbol(Pack<T, n> a, Pack<T, n> b) {        \
    return each(a, b, [](auto x, auto y) OKFOREST_LAMBDA { return x symbol y; }); \
  }
OKFOREST_OPERATOR(+)
OKFOREST_OPERATOR(-)
OKFOREST_OPERATOR(*)
OKFOREST_OPERATOR(/)
#undef OKFOREST_OPERATOR

template <class T, int n>
OKFOREST_INLINE Pack<T, n> smaller(const Pack<T, n>& a, const Pack<T, n>& b) {
  return each(a, b, [](auto x, auto y) OKFOREST_LAMBDA { return x < y ? x : y; });
}
template <class T, int n>
OKFOREST_INLINE Pack<T, n> larger(const Pack<T, n>& a, const Pack<T, n>& b) {
  return each(a, b, [](auto x, auto y) OKFOREST_LAMBDA { return x > y ? x : y; });
}

// -1, as an unsigned integer, where a <= b, else zero.
template <class T, int n>
OKFOREST_INLINE auto at_most(const Pack<T, n>& a, const Pack<T, n>& b) {
  using Word = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  if constexpr (is_native<T, n>) {
    return Pack<Word, n>{std::bit_cast<typename Pack<Word, n>::Vector>(a.v <= b.v)};
  } else {
    return Pack<Word, n>{at_most(a.low, b.low), at_most(a.high, b.high)};
  }
}

// x where a < b, else zero.
template <class T, int n>
OKFOREST_INLINE Pack<T, n> where_less(const Pack<T, n>& a, const Pack<T, n>& b,
                                      const Pack<T, n>& x) {
  if constexpr (is_native<T, n>) {
    return {a.v < b.v ? x.v : typename Pack<T, n>::Vector{}};
  } else {
    return {where_less(a.low, b.low, x.low), where_less(a.high, b.high, x.high)};
  }
}

template <class T, int n>
struct Halves {
  Pack<T, n / 2> low, high;
};

// The same numbers in a type that is not narrower and holds them all.
template <class Wide, class T, int n>
OKFOREST_INLINE Pack<Wide, n> convert(const Pack<T, n>& x) {
  if constexpr (std::is_same_v<Wide, T>) {
    return x;
  } else if constexpr (is_native<Wide, n>) {
    return {__builtin_convertvector(x.v, typename Pack<Wide, n>::Vector)};
  } else if constexpr (is_native<T, n>) {
    const auto halves = std::bit_cast<Halves<T, n>>(x);
    return {convert<Wide>(halves.low), convert<Wide>(halves.high)};
  } else {
    return {convert<Wide>(x.low), convert<Wide>(x.high)};
  }
}

// The same numbers as doubles.
template <class T, int n>
OKFOREST_INLINE Pack<double, n> widen(const Pack<T, n>& x) {
  return convert<double>(x);
}

// The nearest floats.
template <int n>
OKFOREST_INLINE Pack<float, n> narrow(const Pack<double, n>& x) {
  if constexpr (is_native<double, n>) {
    return {__builtin_convertvector(x.v, typename Pack<float, n>::Vector)};
  } else if constexpr (is_native<float, n>) {
    return std::bit_cast<Pack<float, n>>(Halves<float, n>{narrow(x.low), narrow(x.high)});
  } else {
    return {narrow(x.low), narrow(x.high)};
  }
}

// a where x <= y, else b.
template <class T, int n>
OKFOREST_INLINE Pack<T, n> select_at_most(const Pack<T, n>& x, const Pack<T, n>& y,
                                          const Pack<T, n>& a, const Pack<T, n>& b) {
  if constexpr (is_native<T, n>) {
    return {x.v <= y.v ? a.v : b.v};
  } else {
    return {select_at_most(x.low, y.low, a.low, b.low),
            select_at_most(x.high, y.high, a.high, b.high)};
  }
}

// Applies a function of one native vector, which may change the type of its numbers.
template <class U, class T, int n, class F>
OKFOREST_INLINE Pack<U, n> map(const Pack<T, n>& x, F&& f) {
  if constexpr (is_native<T, n>) {
    return {f(x.v)};
  } else {
    return {map<U>(x.low, f), map<U>(x.high, f)};
  }
}

// Keeps a value in registers: compilers like to load it again for every use.
template <class T, int n>
OKFOREST_INLINE void keep(Pack<T, n>& x) {
#if defined(__x86_64__)
  if constexpr (is_native<T, n>) {
    asm("" : "+x"(x.v));
  } else {
    keep(x.low);
    keep(x.high);
  }
#else
  (void)x;
#endif
}

// The sum of all numbers: halves are added until one is left.
template <class T, int n>
OKFOREST_INLINE T total(const Pack<T, n>& x) {
  if constexpr (!is_native<T, n>) {
    return total(x.low + x.high);
  } else if constexpr (n == 2) {
    return x.v[0] + x.v[1];
  } else {
    const auto halves = std::bit_cast<Halves<T, n>>(x);
    return total(halves.low + halves.high);
  }
}

// Exchanges parts of two rows of a matrix: the upper of each two blocks of `step` numbers of the
// first with the lower ones of the second.
template <int step, class Vector, std::size_t... lane>
OKFOREST_INLINE void exchange(Vector& a, Vector& b, std::index_sequence<lane...>) {
  constexpr int n = sizeof...(lane);
  const Vector first = a;
  a = __builtin_shufflevector(first, b, (lane & step ? n + lane - step : lane)...);
  b = __builtin_shufflevector(first, b, (lane & step ? n + lane : lane + step)...);
}

// Transposes a square matrix.
template <int n, int step = n / 2>
OKFOREST_INLINE void transpose(Pack<double, n>* rows) {
  if constexpr (!is_native<double, n>) {
    Pack<double, n / 2> low[n], high[n];
    for (int i = 0; i < n; ++i) low[i] = rows[i].low, high[i] = rows[i].high;
    for (const int half : {0, n / 2}) transpose<n / 2>(low + half), transpose<n / 2>(high + half);
    for (int i = 0; i < n / 2; ++i) {
      rows[i] = {low[i], low[n / 2 + i]};
      rows[n / 2 + i] = {high[i], high[n / 2 + i]};
    }
  } else if constexpr (step > 0) {
    for (int i = 0; i < n; ++i) {
      if ((i & step) == 0) {
        exchange<step>(rows[i].v, rows[i + step].v, std::make_index_sequence<n>{});
      }
    }
    transpose<n, step / 2>(rows);
  }
}

}  // namespace OKFOREST_LEVEL
}  // namespace okforest
