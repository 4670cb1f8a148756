// The kernels of random cuts of bytes; see ByteKernels. A part of kernels.cpp.
#pragma once

#include "core/cut_kernels.hpp"
#include "core/kernels.hpp"
#include "core/simd.hpp"

namespace okforest::OKFOREST_LEVEL {

namespace {

void byte_ranges(const std::uint8_t* lines, std::size_t n, float* low, float* high) {
  auto least = fill<std::uint8_t, kWidth>(255), most = fill<std::uint8_t, kWidth>(0);
  for (std::size_t k = 0; k < n; ++k) {
    const auto x = load<std::uint8_t, kWidth>(lines + k * kWidth);
    least = smaller(x, least);
    most = larger(x, most);
  }
  std::uint8_t of_least[kWidth], of_most[kWidth];
  store(least, of_least);
  store(most, of_most);
  for (int c = 0; c < kWidth; ++c) {
    low[c] = of_least[c];
    high[c] = of_most[c];
  }
}

void byte_class_gains(const CutLines<std::uint8_t, float>& cuts, const std::int32_t* classes,
                      std::span<const double> shares, const Gain& gain, std::int32_t* counts,
                      CutGains& gains) {
  std::uint8_t whole[kWidth];  // a byte is at most a threshold if it is at most its whole part
  for (int c = 0; c < kWidth; ++c) whole[c] = static_cast<std::uint8_t>(cuts.threshold[c]);
  const auto threshold = load<std::uint8_t, kWidth>(whole);
  const auto one = fill<std::uint8_t, kWidth>(1), zero = fill<std::uint8_t, kWidth>(0);
  const auto of_class = [&](std::size_t c) OKFOREST_LAMBDA {
    return load<std::int32_t, kWidth>(counts + c * kWidth);
  };
  auto all = fill<std::int32_t, kWidth>(0);
  for (std::size_t c = 0; c < shares.size(); ++c) store(all, counts + c * kWidth);
  for (std::size_t k = 0; k < cuts.n; ++k) {
    const auto c = static_cast<std::size_t>(classes[k]);
    const auto left =
        select_at_most(load<std::uint8_t, kWidth>(cuts.lines + k * kWidth), threshold, one, zero);
    store(of_class(c) + convert<std::int32_t>(left), counts + c * kWidth);
  }
  for (std::size_t c = 0; c < shares.size(); ++c) all = all + of_class(c);
  const SideWeights<false> sides{widen(all), fill<double, kWidth>(gain.weight) - widen(all),
                                 widen(all)};
  auto norm = fill<double, kWidth>(0.0);
  for (std::size_t c = 0; c < shares.size(); ++c) {
    const auto centred = widen(of_class(c)) - sides.left * fill<double, kWidth>(shares[c]);
    norm = norm + centred * centred;
  }
  store_gains(norm, sides, gain, cuts, gains);
}

}  // namespace

}  // namespace okforest::OKFOREST_LEVEL
