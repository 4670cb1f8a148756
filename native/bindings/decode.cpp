#include <stdexcept>

#include "bindings/arrays.hpp"
#include "bindings/interrupt.hpp"
#include "decode/candidates.hpp"
#include "decode/quantiles.hpp"

namespace okforest {

namespace {

Result<std::int32_t, 2> quantile_places_binding(const Vector<std::int64_t>& offsets,
                                                const Vector<std::int32_t>& columns,
                                                const Vector<double>& values,
                                                const Vector<std::int32_t>& ranks,
                                                const Vector<double>& levels, int n_threads) {
  const RankedWeights weights{view(offsets), view(columns), view(values), view(ranks)};
  const auto n_train = static_cast<std::int64_t>(weights.ranks.size());
  const bool fit = n_train > 0 && are_offsets(weights.offsets, weights.columns.size()) &&
                   weights.values.size() == weights.columns.size() &&
                   are_indices(weights.columns, n_train) && are_indices(weights.ranks, n_train);
  if (!fit) throw std::invalid_argument("the arrays of the weights are inconsistent");
  return to_numpy<2>(interruptible([&](Watch& watch) {
                       return quantile_places(weights, view(levels), n_threads, watch);
                     }),
                     {weights.offsets.size() - 1, levels.size()});
}

using Floats3 = nb::ndarray<const float, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

std::tuple<Result<std::int64_t>, Result<std::int64_t>> near_candidates_binding(
    const Matrix<double>& queries, const std::variant<Floats3, Matrix<std::uint64_t>>& values,
    const Vector<float>& half_squares, const Vector<double>& reach, std::int64_t k,
    std::int64_t most, int n_threads) {
  constexpr auto width = static_cast<std::size_t>(CandidatePanels::width);
  const CandidatePanels common{static_cast<std::int64_t>(queries.shape(1)), view(half_squares),
                               view(reach)};
  const auto search = [&](const auto& panels, const auto& array, std::size_t lanes) {
    const bool fit = array.shape(0) == reach.size() && array.shape(1) == queries.shape(1) &&
                     lanes == width && half_squares.size() == reach.size() * width && k > 0 &&
                     most >= k;
    if (!fit) throw std::invalid_argument("the arrays of the candidates are inconsistent");
    return interruptible([&](Watch& watch) {
      return near_candidates(view(queries), panels, k, most, n_threads, watch);
    });
  };
  Survivors found;
  if (const auto* floats = std::get_if<Floats3>(&values)) {
    const VectorPanels panels{common, std::span(data_of(*floats), floats->size())};
    found = search(panels, *floats, floats->shape(2));
  } else {
    const auto& words = std::get<Matrix<std::uint64_t>>(values);
    const BitPanels panels{common, std::span(data_of(words), words.size())};
    found = search(panels, words, width);
  }
  return {to_numpy(std::move(found.offsets)), to_numpy(std::move(found.candidates))};
}

}  // namespace

void bind_decode(nb::module_& m) {
  using namespace nb::literals;
  m.def("near_candidates", &near_candidates_binding, "queries"_a.noconvert(),
        "values"_a.noconvert(), "half_squares"_a.noconvert(), "reach"_a.noconvert(), "k"_a,
        "most"_a, "n_threads"_a);
  m.def("quantile_places", &quantile_places_binding, "offsets"_a.noconvert(),
        "columns"_a.noconvert(), "values"_a.noconvert(), "ranks"_a.noconvert(),
        "levels"_a.noconvert(), "n_threads"_a);
}

}  // namespace okforest
