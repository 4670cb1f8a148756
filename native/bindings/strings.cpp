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
  bool sound = !found.offsets.empty() && found.offsets.front() == 0 &&
               found.offsets.back() == static_cast<std::int64_t>(found.values.size());
  for (std::size_t i = 0; sound && i + 1 < found.offsets.size(); ++i) {
    sound = found.offsets[i] <= found.offsets[i + 1];
  }
  if (!sound) throw std::invalid_argument("the offsets of the sequences are inconsistent");
  return found;
}

void check_positive(int k) {
  if (k < 1) throw std::invalid_argument("k must be positive");
}

template <class T, class Compare>
Result<double, 2> compare(const Arrays<T>& a, const Arrays<T>& b, Compare&& function) {
  const Ragged<T> first = ragged(a), second = ragged(b);
  const auto n = static_cast<std::size_t>(first.size()),
             m = static_cast<std::size_t>(second.size());
  std::vector<double> result(n * m);
  {
    nb::gil_scoped_release unlocked;
    function(first, second, std::span<double>(result));
  }
  return to_numpy<double, 2>(std::move(result), {n, m});
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
        return compare(a, b, [&](const Sequences& u, const Sequences& v, std::span<double> result) {
          mismatch(u, v, k, view(common), result);
        });
      },
      nb::arg("a").noconvert(), nb::arg("b").noconvert(), nb::arg("k"),
      nb::arg("common").noconvert());
  m.def(
      "gap_weighted",
      [](const Arrays<std::int32_t>& a, const Arrays<std::int32_t>& b, int k, double decay) {
        check_positive(k);
        return compare(a, b, [&](const Sequences& u, const Sequences& v, std::span<double> result) {
          gap_weighted(u, v, k, decay, result);
        });
      },
      nb::arg("a").noconvert(), nb::arg("b").noconvert(), nb::arg("k"), nb::arg("decay"));
  m.def(
      "edit_distances",
      [](const Arrays<std::int32_t>& a, const Arrays<std::int32_t>& b) {
        return compare(a, b, [](const Sequences& u, const Sequences& v, std::span<double> result) {
          edit_distances(u, v, result);
        });
      },
      nb::arg("a").noconvert(), nb::arg("b").noconvert());
  m.def(
      "log_alignments",
      [](const Arrays<double>& a, const Arrays<double>& b, double sigma) {
        return compare(
            a, b, [&](const Ragged<double>& u, const Ragged<double>& v, std::span<double> result) {
              log_alignments(u, v, sigma, result);
            });
      },
      nb::arg("a").noconvert(), nb::arg("b").noconvert(), nb::arg("sigma"));
}

}  // namespace okforest
