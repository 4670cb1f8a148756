#include "core/predict.hpp"

#include <stdexcept>

#include "bindings/arrays.hpp"
#include "bindings/forest.hpp"
#include "bindings/interrupt.hpp"
#include "decode/nearest.hpp"

namespace okforest {

namespace {

// A float32 matrix in groups of columns: see FloatFactor.
using Panels = nb::ndarray<const float, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

using CsrArrays = std::tuple<Result<double>, Result<std::int32_t>, Result<std::int64_t>>;

// Calls f(inputs), after checking that they have the features of the trees.
template <class F>
auto with_inputs(const AnyInputs& X, const ForestView& forest, const F& f) {
  const auto n_features = static_cast<std::int64_t>(forest.n_categories.size());
  const auto checked = [&](const auto& inputs) {
    if (inputs.n_cols != n_features) {
      throw std::invalid_argument("X and the trees have different numbers of features");
    }
    return f(inputs);
  };
  return std::visit([&](const auto& x) { return checked(inputs_of<RowInputs>(x, n_features)); }, X);
}

Result<std::int32_t, 2> apply_binding(const AnyInputs& X, const NamedArrays& trees, int n_threads) {
  const ForestView forest = forest_view(trees);
  return with_inputs(X, forest, [&](const auto& inputs) {
    return to_numpy<2>(
        interruptible([&](Watch& watch) { return apply(inputs, forest, n_threads, watch); }),
        {static_cast<std::size_t>(inputs.n_rows), static_cast<std::size_t>(forest.n_trees())});
  });
}

// The leaves as a span, after checking that the trees have these nodes.
std::span<const std::int32_t> checked(const Matrix<std::int32_t>& leaves, const ForestView& forest,
                                      Watch& watch) {
  const std::size_t n_trees = leaves.shape(1);
  if (static_cast<std::int64_t>(n_trees) != forest.n_trees()) {
    throw std::invalid_argument("leaves must have one column per tree");
  }
  Pace pace(watch);
  const std::int32_t* leaf = data_of(leaves);
  for (std::size_t i = 0; i < leaves.shape(0); ++i) {
    for (std::size_t t = 0; t < n_trees; ++t, ++leaf) {
      if (*leaf < -1 || *leaf >= forest.node_offsets[t + 1] - forest.node_offsets[t]) {
        throw std::invalid_argument("leaves contains a node that its tree does not have");
      }
    }
    pace.advance(static_cast<std::int64_t>(n_trees));
  }
  return {data_of(leaves), leaves.size()};
}

CsrArrays leaf_weights_binding(const Matrix<std::int32_t>& leaves, const NamedArrays& trees,
                               int n_threads) {
  const ForestView forest = forest_view(trees);
  SparseRows rows = interruptible([&](Watch& watch) {
    return leaf_weights(checked(leaves, forest, watch), forest, n_threads, watch);
  });
  return {to_numpy(std::move(rows.values)), to_numpy(std::move(rows.columns)),
          to_numpy(std::move(rows.offsets))};
}

std::tuple<std::int64_t, std::int64_t> count_members_binding(const Matrix<std::int32_t>& leaves,
                                                             const NamedArrays& trees) {
  const ForestView forest = forest_view(trees);
  const LeafCounts counts = interruptible(
      [&](Watch& watch) { return count_members(checked(leaves, forest, watch), forest, watch); });
  return {counts.n_leaves, counts.n_members};
}

Result<double, 2> leaf_means_binding(const Matrix<std::int32_t>& leaves, const NamedArrays& trees,
                                     const Matrix<double>& values, int n_threads) {
  const ForestView forest = forest_view(trees);
  const MatrixView rows = view(values);
  if (rows.n_rows != static_cast<std::int64_t>(forest.row_weight.size())) {
    throw std::invalid_argument("values must have one row per training row");
  }
  std::vector<double> means = interruptible([&](Watch& watch) {
    return leaf_means(checked(leaves, forest, watch), forest, rows, n_threads, watch);
  });
  return to_numpy<2>(std::move(means), {leaves.shape(0), values.shape(1)});
}

std::tuple<Result<std::int32_t>, Result<double, 2>> leaf_table_binding(const NamedArrays& trees,
                                                                       const Matrix<double>& values,
                                                                       std::int64_t most_means,
                                                                       int n_threads) {
  const ForestView forest = forest_view(trees);
  const MatrixView rows = view(values);
  if (rows.n_rows != static_cast<std::int64_t>(forest.row_weight.size())) {
    throw std::invalid_argument("values must have one row per training row");
  }
  LeafTable table = interruptible(
      [&](Watch& watch) { return leaf_table(forest, rows, most_means, n_threads, watch); });
  const std::size_t n_means = values.shape(1) == 0 ? 0 : table.means.size() / values.shape(1);
  return {to_numpy(std::move(table.places)),
          to_numpy<2>(std::move(table.means), {n_means, values.shape(1)})};
}

Result<double, 2> leaf_sums_binding(const AnyInputs& X, const NamedArrays& trees,
                                    const Vector<std::int32_t>& places, const Matrix<double>& means,
                                    const Matrix<double>& values, const Vector<double>& start,
                                    double factor, int n_threads) {
  const ForestView forest = forest_view(trees);
  const LeafVectors vectors{view(places), view(means), view(values)};
  // The entries of `places` are trusted, as those of the trees are.
  if (vectors.places.size() != forest.left.size() || means.shape(1) != start.size() ||
      values.shape(1) != start.size()) {
    throw std::invalid_argument("the arrays of the leaves' vectors are inconsistent");
  }
  return with_inputs(X, forest, [&](const auto& inputs) {
    return to_numpy<2>(interruptible([&](Watch& watch) {
                         return leaf_sums(inputs, forest, vectors, view(start), factor, n_threads,
                                          watch);
                       }),
                       {static_cast<std::size_t>(inputs.n_rows), start.size()});
  });
}

// The weights, after checking that all indices are within bounds.
WeightsView checked_weights(const Vector<std::int64_t>& offsets,
                            const Vector<std::int32_t>& columns, const Vector<double>& values,
                            const Vector<std::int32_t>& places, std::int64_t n_candidates) {
  const WeightsView weights{view(offsets), view(columns), view(values), view(places)};
  const auto n_places = static_cast<std::int64_t>(weights.places.size());
  const bool sound = are_offsets(weights.offsets, weights.columns.size()) &&
                     weights.values.size() == weights.columns.size() &&
                     are_indices(weights.columns, n_places) &&
                     are_indices(weights.places, n_candidates);
  if (!sound) throw std::invalid_argument("the arrays of the weights are inconsistent");
  return weights;
}

std::tuple<Result<std::int64_t>, Result<double>> find_nearest_binding(
    const Vector<std::int64_t>& offsets, const Vector<std::int32_t>& columns,
    const Vector<double>& values, const Vector<std::int32_t>& places, const Matrix<double>& gram,
    const Vector<double>& squares, const Panels& panels, const Vector<float>& half_squares,
    double largest, int n_threads) {
  const auto n = static_cast<std::int64_t>(gram.shape(0));
  const auto n_packs = static_cast<std::int64_t>(panels.shape(0)) * FloatFactor::most_packs;
  constexpr std::size_t width = FloatFactor::most_packs * FloatFactor::lanes;
  const bool fit = n > 0 && gram.shape(1) == gram.shape(0) && squares.size() == gram.shape(0) &&
                   panels.shape(1) == gram.shape(0) && panels.shape(2) == width &&
                   half_squares.size() == panels.shape(0) * width &&
                   half_squares.size() >= gram.shape(0);
  if (!fit) throw std::invalid_argument("the arrays of the candidates are inconsistent");
  const CandidatesView candidates{
      view(gram), view(squares), {data_of(panels), n, n_packs}, view(half_squares), largest};
  const WeightsView weights = checked_weights(offsets, columns, values, places, n);
  Nearest found =
      interruptible([&](Watch& w) { return find_nearest(weights, candidates, n_threads, w); });
  return {to_numpy(std::move(found.candidates)), to_numpy(std::move(found.costs))};
}

}  // namespace

void bind_predict(nb::module_& m) {
  using namespace nb::literals;
  m.def("apply", &apply_binding, "X"_a.noconvert(), "trees"_a, "n_threads"_a);
  m.def("count_members", &count_members_binding, "leaves"_a.noconvert(), "trees"_a);
  m.def("find_nearest", &find_nearest_binding, "offsets"_a.noconvert(), "columns"_a.noconvert(),
        "values"_a.noconvert(), "places"_a.noconvert(), "gram"_a.noconvert(),
        "squares"_a.noconvert(), "panels"_a.noconvert(), "half_squares"_a.noconvert(), "largest"_a,
        "n_threads"_a);
  m.def("leaf_means", &leaf_means_binding, "leaves"_a.noconvert(), "trees"_a,
        "values"_a.noconvert(), "n_threads"_a);
  m.def("leaf_sums", &leaf_sums_binding, "X"_a.noconvert(), "trees"_a, "places"_a.noconvert(),
        "means"_a.noconvert(), "values"_a.noconvert(), "start"_a.noconvert(), "factor"_a,
        "n_threads"_a);
  m.def("leaf_table", &leaf_table_binding, "trees"_a, "values"_a.noconvert(), "most_means"_a,
        "n_threads"_a);
  m.def("leaf_weights", &leaf_weights_binding, "leaves"_a.noconvert(), "trees"_a, "n_threads"_a);
}

}  // namespace okforest
