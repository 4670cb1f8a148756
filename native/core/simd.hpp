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

// Calls f(flag as a constant).
template <class F>
OKFOREST_INLINE void with_constant(bool flag, F&& f) {
  return flag ? f(std::true_type{}) : f(std::false_type{});
}

template <class T, int n>
inline constexpr bool is_native = (n * sizeof(T) <= kVectorBytes);

// n numbers of type T: one native vector, or two halves.
template <class T, int n, bool native = is_native<T, n>>
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
OKFOREST_INLINE Pack<T, n> fill(T x) {
  if constexpr (is_native<T, n>) {
    return {x - typename Pack<T, n>::Vector{}};  // x, of either sign, without an instruction
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

// The numbers at some places.
template <class T, int n, std::size_t... k>
OKFOREST_INLINE Pack<T, n> gather(const T* from, const std::int32_t* places,
                                  std::index_sequence<k...>) {
  return {typename Pack<T, n>::Vector{from[places[k]]...}};
}
template <class T, int n>
OKFOREST_INLINE Pack<T, n> gather(const T* from, const std::int32_t* places) {
  if constexpr (is_native<T, n>) {
    return gather<T, n>(from, places, std::make_index_sequence<n>{});
  } else {
    return {gather<T, n / 2>(from, places), gather<T, n / 2>(from, places + n / 2)};
  }
}

// Applies an operation on native vectors to packs of the same length, which gives numbers of type U
// and of the same size.
template <class U, class F, class T, int n, class... More>
OKFOREST_INLINE Pack<U, n> each(F&& f, const Pack<T, n>& x, const More&... more) {
  if constexpr (is_native<T, n>) {
    return {f(x.v, more.v...)};
  } else {
    return {each<U>(f, x.low, more.low...), each<U>(f, x.high, more.high...)};
  }
}

#define OKFOREST_OPERATOR(symbol)                                                    \
  template <class T, int n>                                                          \
  OKFOREST_INLINE Pack<T, n> operator symbol(Pack<T, n> a, Pack<T, n> b) {           \
    return each<T>([](auto x, auto y) OKFOREST_LAMBDA { return x symbol y; }, a, b); \
  }
OKFOREST_OPERATOR(+)
OKFOREST_OPERATOR(-)
OKFOREST_OPERATOR(*)
OKFOREST_OPERATOR(/)
#undef OKFOREST_OPERATOR

template <class T, int n>
OKFOREST_INLINE Pack<T, n> smaller(const Pack<T, n>& a, const Pack<T, n>& b) {
  return each<T>([](auto x, auto y) OKFOREST_LAMBDA { return x < y ? x : y; }, a, b);
}
template <class T, int n>
OKFOREST_INLINE Pack<T, n> larger(const Pack<T, n>& a, const Pack<T, n>& b) {
  return each<T>([](auto x, auto y) OKFOREST_LAMBDA { return x > y ? x : y; }, a, b);
}

// -1, as an unsigned integer, where a <= b, else zero.
template <class T, int n>
OKFOREST_INLINE auto at_most(const Pack<T, n>& a, const Pack<T, n>& b) {
  using Word = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  const auto compare = [](auto x, auto y) OKFOREST_LAMBDA {
    typedef Word Words __attribute__((vector_size(sizeof(x))));
    return std::bit_cast<Words>(x <= y);
  };
  return each<Word>(compare, a, b);
}

// a where x <= y, else b.
template <class T, int n>
OKFOREST_INLINE Pack<T, n> select_at_most(const Pack<T, n>& x, const Pack<T, n>& y,
                                          const Pack<T, n>& a, const Pack<T, n>& b) {
  const auto f = [](auto u, auto v, auto p, auto q) OKFOREST_LAMBDA { return u <= v ? p : q; };
  return each<T>(f, x, y, a, b);
}

// The two halves of a native vector.
template <class T, int n>
using Halves = Pack<T, n, false>;

// The nearest numbers of another type.
template <class U, class T, int n>
OKFOREST_INLINE Pack<U, n> convert(const Pack<T, n>& x) {
  if constexpr (std::is_same_v<U, T>) {
    return x;
  } else if constexpr (std::is_floating_point_v<T> + std::is_floating_point_v<U> == 1 &&
                       (sizeof(T) == 1 || sizeof(U) == 1)) {
    return convert<U>(convert<std::int32_t>(x));  // compilers do it one by one
  } else if constexpr (is_native<T, n> && is_native<U, n>) {
    return {__builtin_convertvector(x.v, typename Pack<U, n>::Vector)};
  } else if constexpr (is_native<T, n>) {
    const auto halves = std::bit_cast<Halves<T, n>>(x);
    return {convert<U>(halves.low), convert<U>(halves.high)};
  } else if constexpr (is_native<U, n>) {
    return std::bit_cast<Pack<U, n>>(Halves<U, n>{convert<U>(x.low), convert<U>(x.high)});
  } else {
    return {convert<U>(x.low), convert<U>(x.high)};
  }
}

template <class T, int n>
OKFOREST_INLINE Pack<double, n> widen(const Pack<T, n>& x) {
  return convert<double>(x);
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
