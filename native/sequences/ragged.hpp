// Lists of sequences of different lengths.
#pragma once

#include <cstdint>
#include <span>

namespace okforest {

// Sequences, one after the other; sequence i is values[offsets[i], offsets[i + 1]).
template <class T>
struct Ragged {
  std::span<const T> values;
  std::span<const std::int64_t> offsets;

  std::int64_t size() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
  std::span<const T> operator[](std::int64_t i) const {
    return values.subspan(offsets[i], offsets[i + 1] - offsets[i]);
  }
};

}  // namespace okforest
