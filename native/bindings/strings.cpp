// The extension module okforest._strings.
#include "sequences/strings.hpp"

#include "bindings/arrays.hpp"
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

// function(u, v) for every pair of sequences of a and b, by rows.
template <class T, class Compare>
Result<double, 2> compare(const Arrays<T>& a, const Arrays<T>& b, Compare&& function) {
  const Ragged<T> first = ragged(a), second = ragged(b);
  std::vector<double> result;
  {
    nb::gil_scoped_release unlocked;
    result.reserve(static_cast<std::size_t>(first.size() * second.size()));
    for (std::int64_t i = 0; i < first.size(); ++i) {
      for (std::int64_t j = 0; j < second.size(); ++j) {
        result.push_back(function(first[i], second[j]));
      }
    }
  }
  return to_numpy<2>(std::move(result), {static_cast<std::size_t>(first.size()),
                                         static_cast<std::size_t>(second.size())});
}

}  // namespace

NB_MODULE(_strings, m) {
  m.doc() =
      "Comparisons of sequences of symbols or numbers. Use okforest.kernels, which documents them.";
  m.def(
      "number_kmers",
      [](const Arrays<std::int32_t>& sequences, int k, bool boundaries) {
        check_positive(k);
        const Sequences found = ragged(sequences);
        Kmers kmers;
        {
          nb::gil_scoped_release unlocked;
          kmers = number_kmers(found, k, boundaries);
        }
        return std::make_tuple(to_numpy(std::move(kmers.numbers)),
                               to_numpy(std::move(kmers.starts)));
      },
      nb::arg("sequences").noconvert(), nb::arg("k"), nb::arg("boundaries"));
  m.def(
      "mismatch",
      [](const Arrays<std::int32_t>& a, const Arrays<std::int32_t>& b, int k,
         const Vector<double>& common) {
        check_positive(k);
        if (common.size() != static_cast<std::size_t>(k) + 1) {
          throw std::invalid_argument("common must have k + 1 entries");
        }
        const auto weights = view(common);
        return compare(a, b, [&](Sequence u, Sequence v) { return mismatch(u, v, k, weights); });
      },
      nb::arg("a").noconvert(), nb::arg("b").noconvert(), nb::arg("k"),
      nb::arg("common").noconvert());
  m.def(
      "gap_weighted",
      [](const Arrays<std::int32_t>& a, const Arrays<std::int32_t>& b, int k, double decay) {
        check_positive(k);
        std::vector<double> before;
        return compare(
            a, b, [&](Sequence u, Sequence v) { return gap_weighted(u, v, k, decay, before); });
      },
      nb::arg("a").noconvert(), nb::arg("b").noconvert(), nb::arg("k"), nb::arg("decay"));
  m.def(
      "edit_distances",
      [](const Arrays<std::int32_t>& a, const Arrays<std::int32_t>& b) {
        std::vector<std::int64_t> line;
        return compare(a, b, [&](Sequence u, Sequence v) { return edit_distance(u, v, line); });
      },
      nb::arg("a").noconvert(), nb::arg("b").noconvert());
  m.def(
      "log_alignments",
      [](const Arrays<double>& a, const Arrays<double>& b, double sigma) {
        std::vector<double> row;
        return compare(a, b, [&](Curve u, Curve v) { return log_alignment(u, v, sigma, row); });
      },
      nb::arg("a").noconvert(), nb::arg("b").noconvert(), nb::arg("sigma"));
}

}  // namespace okforest
