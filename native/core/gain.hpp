// The gain of a split, and when two gains count as equal.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace okforest {

// Two gains are equal if their relative difference is below kTie, or their difference below kNoise
// times the node's total variance. These are rounding errors, which depend on the form of the
// outputs, the machine and the device.
inline constexpr double kTie = 1e-9;
inline constexpr double kNoise = 1e-12;

inline constexpr double kNoGain = -1.0;   // of a split that is not allowed
inline constexpr double kUnknown = -2.0;  // of a feature that has not been scored

// Computes and compares the gains of a node's splits.
struct Gain {
  double weight, count, variance;  // of the node
  double least_count;              // that each side must have

  // The reduction of the node's total variance: ||s||^2 W / (W_left W_right), with s the left
  // side's sum around the node's mean, whose squared norm is given; kNoGain if a side is too small.
  double operator()(double norm, double left_weight, double left_count) const {
    if (left_count < least_count || count - left_count < least_count) return kNoGain;
    return std::max(0.0, norm) * weight / (left_weight * (weight - left_weight));
  }

  // Whether a gain is larger than another, which may be kNoGain, and not equal to it.
  bool beats(double gain, double other) const {
    return other < 0.0 || gain * (1.0 - kTie) > other + kNoise * variance;
  }

  // The smallest gain that counts as equal to the largest.
  double least_equal_of(double largest) const {
    return std::max(0.0, largest * (1.0 - kTie) - kNoise * variance);
  }
};

// The range of some gains, and the number of gains that are at least `limit`.
struct Range {
  double least, most;
};
Range range_of(std::span<const double> gains);
std::size_t count_from(double limit, std::span<const double> gains);

}  // namespace okforest
