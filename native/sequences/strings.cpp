#include "sequences/strings.hpp"

#include <algorithm>
#include <numeric>  // for std::iota
#include <unordered_map>
#include <vector>

namespace okforest {

namespace {

constexpr std::int32_t kMark = -1;  // beyond the ends of a sequence

struct Hash {
  std::size_t operator()(const std::int32_t* window) const {
    std::uint64_t value = 0;
    for (int i = 0; i < k; ++i) {
      value = (value ^ static_cast<std::uint32_t>(window[i])) * 0x9E3779B97F4A7C15u;
      value ^= value >> 32;
    }
    return value;
  }
  int k;
};

struct Equal {
  bool operator()(const std::int32_t* u, const std::int32_t* v) const {
    return std::equal(u, u + k, v);
  }
  int k;
};

}  // namespace

Kmers number_kmers(const Sequences& sequences, int k, bool boundaries, Pace& pace) {
  const std::int64_t n_marks = boundaries ? k - 1 : 0;
  std::vector<std::int32_t> padded;
  padded.reserve(sequences.values.size() + 2 * n_marks * sequences.size());
  Kmers found{{}, {0}};
  for (std::int64_t i = 0; i < sequences.size(); ++i) {
    padded.insert(padded.end(), n_marks, kMark);
    padded.insert(padded.end(), sequences[i].begin(), sequences[i].end());
    padded.insert(padded.end(), n_marks, kMark);
    const std::int64_t length = static_cast<std::int64_t>(sequences[i].size()) + 2 * n_marks;
    found.starts.push_back(found.starts.back() + std::max<std::int64_t>(0, length - k + 1));
  }
  found.numbers.reserve(found.starts.back());
  std::unordered_map<const std::int32_t*, std::int32_t, Hash, Equal> numbers(0, Hash{k}, Equal{k});
  const std::int32_t* window = padded.data();
  for (std::int64_t i = 0; i < sequences.size(); ++i) {
    const std::int64_t n_windows = found.starts[i + 1] - found.starts[i];
    for (std::int64_t place = 0; place < n_windows; ++place) {
      const auto next = static_cast<std::int32_t>(numbers.size());
      found.numbers.push_back(numbers.try_emplace(window + place, next).first->second);
      pace.advance(k);
    }
    window += static_cast<std::int64_t>(sequences[i].size()) + 2 * n_marks;
  }
  return found;
}

// Slides a window of k places along every diagonal of s and t.
double mismatch(Sequence s, Sequence t, int k, std::span<const double> common, Pace& pace) {
  const auto n = static_cast<std::int64_t>(s.size()), m = static_cast<std::int64_t>(t.size());
  double total = 0.0;
  for (std::int64_t shift = k - n; shift <= m - k; ++shift) {
    const std::int64_t begin = std::max<std::int64_t>(0, -shift), end = std::min(n, m - shift);
    std::int64_t n_known = 0;  // places since the last symbol that is left out
    int different = 0;         // of the last min(k, n_known) places
    for (std::int64_t i = begin; i < end; ++i) {
      if (s[i] < 0 || t[i + shift] < 0) {
        n_known = different = 0;
        continue;
      }
      different += s[i] != t[i + shift];
      if (++n_known > k) different -= s[i - k] != t[i - k + shift];
      if (n_known >= k) total += common[different];
    }
    pace.advance(end - begin);
  }
  return total;
}

// before[i * m + j] is the weight of the common subsequences of i symbols in the prefix of s so
// far and the first j symbols of t, with the gaps up to the ends of both.
double gap_weighted(Sequence s, Sequence t, int k, double decay, std::vector<double>& before,
                    Pace& pace) {
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
    pace.advance(static_cast<std::int64_t>(before.size()));
  }
  return decay * decay * total;
}

double edit_distance(Sequence s, Sequence t, std::vector<std::int64_t>& line, Pace& pace) {
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
    pace.advance(static_cast<std::int64_t>(line.size()));
  }
  return static_cast<double>(line.back());
}

}  // namespace okforest
