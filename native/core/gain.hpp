// The gain of a split, and when two gains count as equal.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

namespace okforest {

// Two gains are equal if their relative difference is below kTie, or their difference below the
// node's noise: kNoise times its total variance, or the rounding errors of the form of the outputs,
// whichever is larger.
inline constexpr double kTie = 1e-9;
inline constexpr double kNoise = 1e-12;
inline constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
inline constexpr double kRounding = 64 * kEpsilon;

// Sums that were derived by subtraction are computed again, directly, if the variance is below this
// fraction of its scale, or numbers are below this fraction of those that were subtracted.
inline constexpr double kLoss = 1e-2;

inline constexpr double kNoGain = -1.0;   // of a split that is not allowed
inline constexpr double kUnknown = -2.0;  // of a feature that has not been scored

// Whether sums of w_i ||phi_i||^2, and of their products with a weight, keep their precision in
// float32, where smaller and larger numbers vanish or overflow. The lightest weight is given.
inline bool fits_floats(double scale, double lightest) {
  return scale <= 1e30 && lightest >= 1e-30 && scale * lightest >= 1e-30;
}

// The smallest gain that counts as equal to the largest.
inline double least_equal_of(double largest, double noise) {
  return std::max(0.0, largest * (1.0 - kTie) - noise);
}

// Rounds to about nine digits, so that priorities of nodes that differ by rounding errors tie.
inline double coarse(double value) {
  int exponent;
  const double mantissa = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(mantissa * 0x1p30), exponent - 30);
}

// The largest of some numbers; kUnknown if there are none. Eight running maxima do not wait for
// each other.
inline double largest_of(std::span<const double> numbers) {
  double most[8];
  std::fill_n(most, 8, kUnknown);
  std::size_t k = 0;
  for (; k + 8 <= numbers.size(); k += 8) {
    for (std::size_t c = 0; c < 8; ++c) most[c] = std::max(most[c], numbers[k + c]);
  }
  for (; k < numbers.size(); ++k) most[0] = std::max(most[0], numbers[k]);
  return *std::max_element(most, most + 8);
}

// Computes the gains of a node's splits.
struct Gain {
  double weight, count;  // of the node
  double least_count;    // that each side must have

  // Whether a split may have a side of this number of samples.
  bool allows(double side_count) const {
    return (side_count >= least_count) & (count - side_count >= least_count);
  }

  // The reduction of the node's total variance: ||s||^2 W / (W_side (W - W_side)), with s the sum
  // of a side around the node's mean, whose squared norm is given. The side should be the lighter
  // one, whose weight has more digits.
  double of(double norm, double side_weight) const {
    return std::max(0.0, norm) * weight / (side_weight * (weight - side_weight));
  }

  // The same, or kNoGain if a side is too small.
  double operator()(double norm, double side_weight, double side_count) const {
    return allows(side_count) ? of(norm, side_weight) : kNoGain;
  }
};

// Bounds the error of a gain g that was computed in float32, from the sum of a side of weight W_S:
// 2 sqrt(g root r) + (root + flat) r, where r = W / (W - W_S).
struct Precision {
  double root = 0.0, flat = 0.0;

  bool exact() const { return root == 0.0 && flat == 0.0; }
  double error(double gain, double ratio) const {
    return 2.0 * std::sqrt(gain * root * ratio) + (root + flat) * ratio;
  }
};

}  // namespace okforest
