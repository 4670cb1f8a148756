// What a split of a node is worth, and when two are worth the same.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace okforest {

// Two gains that agree to kTie of themselves, or to kNoise of the node's total variance, are equal:
// they differ by rounding, which depends on the form of the outputs, the machine and the device.
inline constexpr double kTie = 1e-9;
inline constexpr double kNoise = 1e-12;

inline constexpr double kNoGain = -1.0;   // of what cannot be
inline constexpr double kUnknown = -2.0;  // of what has not been looked at

// The gains of a node's splits.
struct Gain {
  double weight, count, variance;  // of the node
  double least_count;              // of a side

  // How much a split reduces the node's total variance: with s the left side's sum around the
  // node's mean, ||s||^2 W / (W_left W_right); kNoGain if it is not allowed.
  double operator()(double norm, double left_weight, double left_count) const {
    if (left_count < least_count || count - left_count < least_count) return kNoGain;
    return std::max(0.0, norm) * weight / (left_weight * (weight - left_weight));
  }

  // Whether a gain is more than another, which may be kNoGain, and not its equal.
  bool beats(double gain, double other) const {
    return other < 0.0 || gain * (1.0 - kTie) > other + kNoise * variance;
  }

  // The least of the gains that the largest does not beat.
  double least_equal_of(double largest) const {
    return std::max(0.0, largest * (1.0 - kTie) - kNoise * variance);
  }
};

// The least and the largest of some gains, and how many are not below a limit.
struct Range {
  double least, most;
};
Range range_of(std::span<const double> gains);
std::size_t count_from(double limit, std::span<const double> gains);

}  // namespace okforest
