// Prefixes of a list of rows, which a sweep along a feature scores.
#pragma once

#include <cstdint>
#include <span>

namespace okforest {

struct Prefixes {
  std::span<const std::int32_t> rows;
  std::span<const std::int32_t> lengths;  // of the prefixes, ascending; the last is the list
};

}  // namespace okforest
