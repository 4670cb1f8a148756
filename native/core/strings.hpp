// Comparisons of sequences of symbols, for the kernels on strings.
#pragma once

#include <cstdint>
#include <span>

namespace okforest {

// Sequences of symbols, one after the other; sequence i is symbols[offsets[i], offsets[i + 1]).
struct Sequences {
  std::span<const std::int32_t> symbols;
  std::span<const std::int64_t> offsets;

  std::int64_t size() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
  std::span<const std::int32_t> operator[](std::int64_t i) const {
    return symbols.subspan(offsets[i], offsets[i + 1] - offsets[i]);
  }
};

// For every pair of sequences of a and b, the sum over all common subsequences of k symbols, with
// gaps, of `decay` to the lengths that their occurrences span (Lodhi et al., 2002). The result is
// of size a.size() * b.size(), by rows. A pair costs k times the product of the lengths.
void gap_weighted(const Sequences& a, const Sequences& b, int k, double decay,
                  std::span<double> result);

// The Levenshtein distance of every pair of sequences of a and b, by rows.
void edit_distances(const Sequences& a, const Sequences& b, std::span<double> result);

}  // namespace okforest
