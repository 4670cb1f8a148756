// Counter-based random numbers. A seed identifies a stream, and `derive` makes new seeds from a
// seed. Trees and nodes share no state: what a node draws depends on the seed of its tree and on
// the path to it, not on the order of growth, the number of threads or the device.
#pragma once

#include <cstdint>

namespace okforest {

inline constexpr std::uint64_t kGamma = 0x9e3779b97f4a7c15ULL;

// The finaliser of SplitMix64, a bijection of 64-bit words that mixes all bits. Takes a word or a
// SIMD vector of words.
template <class Words>
constexpr Words mix(Words z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

constexpr std::uint64_t derive(std::uint64_t seed, std::uint64_t key) {
  return mix<std::uint64_t>(seed ^ mix<std::uint64_t>(key + kGamma));
}

class Rng {
 public:
  explicit Rng(std::uint64_t seed) : state_(seed) {}

  // The stream after n more numbers.
  Rng ahead(std::uint64_t n) const { return Rng(state_ + n * kGamma); }

  std::uint64_t state() const { return state_; }

  std::uint64_t next() { return mix(state_ += kGamma); }

  // Uniform in [0, 1), 53 bits.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

  // Uniform in {0, ..., n - 1} for n < 2^32.
  std::uint32_t below(std::uint32_t n) {
    return static_cast<std::uint32_t>(((next() >> 32) * n) >> 32);
  }

 private:
  std::uint64_t state_;
};

// Interpolates between two values; the result is in [low, high) despite rounding.
inline double uniform_between(double low, double high, double u) {
  const double x = (1.0 - u) * low + u * high;
  return x >= low && x < high ? x : low;
}

}  // namespace okforest
