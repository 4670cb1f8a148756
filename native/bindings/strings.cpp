// The extension module okforest._strings.
#include "sequences/strings.hpp"

#include <nanobind/stl/optional.h>

#include <optional>

#include "bindings/arrays.hpp"
#include "bindings/interrupt.hpp"
#include "sequences/alignment.hpp"

namespace okforest {

namespace {

template <class T>
using Arrays = std::tuple<Vector<T>, Vector<std::int64_t>>;

template <class T>
Ragged<T> ragged(const Arrays<T>& arrays) {
  const Ragged<T> found{view(std::get<0>(arrays)), view(std::get<1>(arrays))};
  if (!are_offsets(found.offsets, found.values.size())) {
    throw std::invalid_argument("the offsets of the sequences are inconsistent");
  }
  return found;
}

void check_positive(int k) {
  if (k < 1) throw std::invalid_argument("k must be positive");
}

// function(u, v, pace) for every pair of sequences of a and b, by rows. Without b, for all pairs of
// a: the function is symmetric, and called once for both orders.
template <class T, class Compare>
Result<double, 2> compare(const Arrays<T>& a, const std::optional<Arrays<T>>& b,
                          const Compare& function) {
  const Ragged<T> first = ragged(a), second = b ? ragged(*b) : first;
  const std::int64_t n = first.size(), m = second.size();
  std::vector<double> result(static_cast<std::size_t>(n * m));
  interruptible([&](Watch& watch) {
    Pace pace(watch);
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = b ? 0 : i; j < m; ++j) {
        const double value = function(first[i], second[j], pace);
        result[i * m + j] = value;
        if (!b) result[j * m + i] = value;
        pace.advance(1);
      }
    }
  });
  return to_numpy<2>(std::move(result), {static_cast<std::size_t>(n), static_cast<std::size_t>(m)});
}

using Others = std::optional<Arrays<std::int32_t>>;

}  // namespace

NB_MODULE(_strings, m) {
  m.doc() =
      "Comparisons of sequences of symbols or numbers. Use okforest.kernels, which documents them.";
  m.def(
      "number_kmers",
      [](const Arrays<std::int32_t>& sequences, int k, bool boundaries) {
        check_positive(k);
        const Sequences found = ragged(sequences);
        Kmers kmers = interruptible([&](Watch& watch) {
          Pace pace(watch);
          return number_kmers(found, k, boundaries, pace);
        });
        return std::make_tuple(to_numpy(std::move(kmers.numbers)),
                               to_numpy(std::move(kmers.starts)));
      },
      nb::arg("sequences").noconvert(), nb::arg("k"), nb::arg("boundaries"));
  m.def(
      "mismatch",
      [](const Arrays<std::int32_t>& a, const Others& b, int k, const Vector<double>& common) {
        check_positive(k);
        if (common.size() != static_cast<std::size_t>(k) + 1) {
          throw std::invalid_argument("common must have k + 1 entries");
        }
        const auto weights = view(common);
        return compare(a, b, [&](Sequence u, Sequence v, Pace& pace) {
          return mismatch(u, v, k, weights, pace);
        });
      },
      nb::arg("a").noconvert(), nb::arg("b").noconvert().none(), nb::arg("k"),
      nb::arg("common").noconvert());
  m.def(
      "gap_weighted",
      [](const Arrays<std::int32_t>& a, const Others& b, int k, double decay) {
        check_positive(k);
        std::vector<double> before;
        return compare(a, b, [&](Sequence u, Sequence v, Pace& pace) {
          return gap_weighted(u, v, k, decay, before, pace);
        });
      },
      nb::arg("a").noconvert(), nb::arg("b").noconvert().none(), nb::arg("k"), nb::arg("decay"));
  m.def(
      "edit_distances",
      [](const Arrays<std::int32_t>& a, const Others& b) {
        std::vector<std::int64_t> line;
        return compare(a, b, [&](Sequence u, Sequence v, Pace& pace) {
          return edit_distance(u, v, line, pace);
        });
      },
      nb::arg("a").noconvert(), nb::arg("b").noconvert().none());
  m.def(
      "log_alignments",
      [](const Arrays<double>& a, const std::optional<Arrays<double>>& b, double sigma) {
        std::vector<double> row;
        return compare(a, b, [&](Curve u, Curve v, Pace& pace) {
          return log_alignment(u, v, sigma, row, pace);
        });
      },
      nb::arg("a").noconvert(), nb::arg("b").noconvert().none(), nb::arg("sigma"));
}

}  // namespace okforest
