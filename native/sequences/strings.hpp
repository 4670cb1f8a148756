// Comparisons of sequences of symbols, for the kernels on strings. Each reports its steps to a
// pace, which may stop it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/watch.hpp"
#include "sequences/ragged.hpp"

namespace okforest {

using Sequence = std::span<const std::int32_t>;  // of symbols
using Sequences = Ragged<std::int32_t>;

// The k-mers of sequences, numbered from 0 in the order in which they are found first. With
// `boundaries`, k - 1 marks are added to both ends of every sequence.
struct Kmers {
  std::vector<std::int32_t> numbers;
  std::vector<std::int64_t> starts;  // where those of each sequence begin, and the end
};
Kmers number_kmers(const Sequences& sequences, int k, bool boundaries, Pace& pace);

// The sum of common[d] over all pairs of k-mers of two sequences, where d is the number of places
// at which they differ (Leslie et al., 2004). K-mers with a negative symbol are left out. Costs the
// product of the lengths.
double mismatch(Sequence s, Sequence t, int k, std::span<const double> common, Pace& pace);

// The sum over all common subsequences of k symbols, with gaps, of `decay` to the lengths that
// their occurrences span (Lodhi et al., 2002). Costs k times the product of the lengths. `before`
// is scratch memory.
double gap_weighted(Sequence s, Sequence t, int k, double decay, std::vector<double>& before,
                    Pace& pace);

// The Levenshtein distance. `line` is scratch memory.
double edit_distance(Sequence s, Sequence t, std::vector<std::int64_t>& line, Pace& pace);

}  // namespace okforest
