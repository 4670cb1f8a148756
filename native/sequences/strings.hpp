// Comparisons of sequences of symbols, for the kernels on strings.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sequences/ragged.hpp"

namespace okforest {

using Sequences = Ragged<std::int32_t>;  // of symbols

// The k-mers of sequences, numbered from 0 in the order in which they are found first. With
// `boundaries`, k - 1 marks are added to both ends of every sequence.
struct Kmers {
  std::vector<std::int32_t> numbers;
  std::vector<std::int64_t> starts;  // where those of each sequence begin, and the end
};
Kmers number_kmers(const Sequences& sequences, int k, bool boundaries);

// For every pair of sequences of a and b, the sum of common[d] over all pairs of their k-mers,
// where d is the number of places at which the two differ (Leslie et al., 2004). K-mers with a
// negative symbol are left out. The result is by rows. A pair costs the product of the lengths.
void mismatch(const Sequences& a, const Sequences& b, int k, std::span<const double> common,
              std::span<double> result);

// For every pair of sequences of a and b, the sum over all common subsequences of k symbols, with
// gaps, of `decay` to the lengths that their occurrences span (Lodhi et al., 2002). The result is
// of size a.size() * b.size(), by rows. A pair costs k times the product of the lengths.
void gap_weighted(const Sequences& a, const Sequences& b, int k, double decay,
                  std::span<double> result);

// The Levenshtein distance of every pair of sequences of a and b, by rows.
void edit_distances(const Sequences& a, const Sequences& b, std::span<double> result);

}  // namespace okforest
