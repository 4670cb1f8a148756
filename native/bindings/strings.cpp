// The extension module okforest._strings.
#include "core/strings.hpp"

#include "bindings/arrays.hpp"

namespace okforest {

namespace {

using Arrays = std::tuple<Vector<std::int32_t>, Vector<std::int64_t>>;

Sequences sequences(const Arrays& arrays) {
  const Sequences found{view(std::get<0>(arrays)), view(std::get<1>(arrays))};
  bool sound = !found.offsets.empty() && found.offsets.front() == 0 &&
               found.offsets.back() == static_cast<std::int64_t>(found.symbols.size());
  for (std::size_t i = 0; sound && i + 1 < found.offsets.size(); ++i) {
    sound = found.offsets[i] <= found.offsets[i + 1];
  }
  if (!sound) throw std::invalid_argument("the offsets of the sequences are inconsistent");
  return found;
}

template <class Compare>
Result<double, 2> compare(const Arrays& a, const Arrays& b, Compare&& function) {
  const Sequences first = sequences(a), second = sequences(b);
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
  m.doc() = "Comparisons of sequences. Use okforest.kernels, which documents them.";
  m.def(
      "gap_weighted",
      [](const Arrays& a, const Arrays& b, int k, double decay) {
        if (k < 1) throw std::invalid_argument("k must be positive");
        return compare(a, b, [&](const Sequences& u, const Sequences& v, std::span<double> result) {
          gap_weighted(u, v, k, decay, result);
        });
      },
      nb::arg("a").noconvert(), nb::arg("b").noconvert(), nb::arg("k"), nb::arg("decay"));
  m.def(
      "edit_distances",
      [](const Arrays& a, const Arrays& b) {
        return compare(a, b, [](const Sequences& u, const Sequences& v, std::span<double> result) {
          edit_distances(u, v, result);
        });
      },
      nb::arg("a").noconvert(), nb::arg("b").noconvert());
}

}  // namespace okforest
