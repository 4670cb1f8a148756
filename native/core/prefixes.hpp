// Beginnings of a list of rows: what a sweep along a feature has scored.
#pragma once

#include <cstdint>
#include <span>

namespace okforest {

struct Prefixes {
  std::span<const std::int32_t> rows;
  std::span<const std::int32_t> lengths;  // of those to score, ascending; the last is of all rows
};

}  // namespace okforest
