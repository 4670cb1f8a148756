#include "core/strings.hpp"

#include <algorithm>
#include <numeric>  // for std::iota
#include <vector>

namespace okforest {

namespace {

using Sequence = std::span<const std::int32_t>;

// before[i * m + j] is the weight of the common subsequences of i symbols in the prefix of s so
// far and the first j symbols of t, with the gaps up to the ends of both.
double gap_weighted_pair(Sequence s, Sequence t, int k, double decay, std::vector<double>& before) {
  const std::size_t m = t.size();
  before.assign(k * m, 0.0);
  std::fill_n(before.begin(), m, 1.0);
  double total = 0.0;
  for (const std::int32_t symbol : s) {
    const double* last = before.data() + (k - 1) * m;
    for (std::size_t j = 0; j < m; ++j) {
      if (t[j] == symbol) total += last[j];
    }
    for (int i = k - 1; i > 0; --i) {
      double* own = before.data() + i * m;
      const double* shorter = own - m;
      double ending = 0.0;  // weight of those that end with this symbol, before place j of t
      for (std::size_t j = 0; j < m; ++j) {
        own[j] = decay * own[j] + ending;
        ending *= decay;
        if (t[j] == symbol) ending += decay * decay * shorter[j];
      }
    }
  }
  return decay * decay * total;
}

double edit_distance(Sequence s, Sequence t, std::vector<std::int64_t>& line) {
  line.resize(t.size() + 1);
  std::iota(line.begin(), line.end(), std::int64_t{0});
  for (std::size_t i = 0; i < s.size(); ++i) {
    std::int64_t diagonal = line[0];
    line[0] = static_cast<std::int64_t>(i) + 1;
    for (std::size_t j = 0; j < t.size(); ++j) {
      const std::int64_t change = diagonal + (s[i] != t[j]);
      diagonal = line[j + 1];
      line[j + 1] = std::min({change, diagonal + 1, line[j] + 1});
    }
  }
  return static_cast<double>(line.back());
}

}  // namespace

void gap_weighted(const Sequences& a, const Sequences& b, int k, double decay,
                  std::span<double> result) {
  std::vector<double> before;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    for (std::int64_t j = 0; j < b.size(); ++j) {
      result[i * b.size() + j] = gap_weighted_pair(a[i], b[j], k, decay, before);
    }
  }
}

void edit_distances(const Sequences& a, const Sequences& b, std::span<double> result) {
  std::vector<std::int64_t> line;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    for (std::int64_t j = 0; j < b.size(); ++j) {
      result[i * b.size() + j] = edit_distance(a[i], b[j], line);
    }
  }
}

}  // namespace okforest
