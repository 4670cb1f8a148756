#include "core/predict.hpp"

#include <stdexcept>

#include "bindings/arrays.hpp"
#include "bindings/forest.hpp"

namespace okforest {

namespace {

using CsrArrays = nb::typed<nb::tuple, Result<double>, Result<std::int32_t>, Result<std::int64_t>>;

Result<std::int32_t, 2> apply_binding(const AnyInputs& X, const NamedArrays& trees, int n_threads) {
  const ForestView forest = forest_view(trees);
  const auto n_features = static_cast<std::int64_t>(forest.n_categories.size());
  const auto n_trees = static_cast<std::size_t>(forest.n_trees());
  std::vector<std::int32_t> leaves;
  const auto apply_to = [&](const auto& inputs) {
    if (inputs.n_cols != n_features) {
      throw std::invalid_argument("X has another number of features than the trees");
    }
    leaves.resize(static_cast<std::size_t>(inputs.n_rows) * n_trees);
    nb::gil_scoped_release nogil;
    apply(inputs, forest, n_threads, leaves);
    return static_cast<std::size_t>(inputs.n_rows);
  };
  const std::size_t n_rows =
      std::visit(Overloaded{
                     [&]<class T>(const Dense<T>& x) { return apply_to(dense_inputs(x)); },
                     [&]<class T>(const Sparse<T>& x) {
                       return apply_to(sparse_inputs<RowInputs, T>(x, n_features));
                     },
                 },
                 X);
  return to_numpy<std::int32_t, 2>(std::move(leaves), {n_rows, n_trees});
}

void check_leaves(const Matrix<std::int32_t>& leaves, const ForestView& forest) {
  if (static_cast<std::int64_t>(leaves.shape(1)) != forest.n_trees()) {
    throw std::invalid_argument("leaves must have one column per tree");
  }
  for (std::size_t k = 0; k < leaves.size(); ++k) {
    const std::size_t t = k % leaves.shape(1);
    const std::int64_t n_nodes = forest.node_offsets[t + 1] - forest.node_offsets[t];
    if (leaves.data()[k] < -1 || leaves.data()[k] >= n_nodes) {
      throw std::invalid_argument("leaves names a node that its tree does not have");
    }
  }
}

CsrArrays leaf_weights_binding(const Matrix<std::int32_t>& leaves, const NamedArrays& trees,
                               int n_threads) {
  const ForestView forest = forest_view(trees);
  check_leaves(leaves, forest);
  SparseRows rows;
  {
    nb::gil_scoped_release nogil;
    rows = leaf_weights({leaves.data(), leaves.size()}, forest, n_threads);
  }
  return CsrArrays(nb::make_tuple(to_numpy(std::move(rows.values)),
                                  to_numpy(std::move(rows.columns)),
                                  to_numpy(std::move(rows.offsets))));
}

Result<double, 2> leaf_means_binding(const Matrix<std::int32_t>& leaves, const NamedArrays& trees,
                                     const Matrix<double>& values, int n_threads) {
  const ForestView forest = forest_view(trees);
  check_leaves(leaves, forest);
  const MatrixView view{values.data(), static_cast<std::int64_t>(values.shape(0)),
                        static_cast<std::int64_t>(values.shape(1))};
  if (view.n_rows != static_cast<std::int64_t>(forest.row_weight.size())) {
    throw std::invalid_argument("values must have one row per training row");
  }
  std::vector<double> means;
  {
    nb::gil_scoped_release nogil;
    means = leaf_means({leaves.data(), leaves.size()}, forest, view, n_threads);
  }
  return to_numpy<double, 2>(std::move(means), {leaves.shape(0), values.shape(1)});
}

}  // namespace

void bind_predict(nb::module_& m) {
  using namespace nb::literals;
  m.def("apply", &apply_binding, "X"_a.noconvert(), "trees"_a, "n_threads"_a);
  m.def("leaf_means", &leaf_means_binding, "leaves"_a.noconvert(), "trees"_a,
        "values"_a.noconvert(), "n_threads"_a);
  m.def("leaf_weights", &leaf_weights_binding, "leaves"_a.noconvert(), "trees"_a, "n_threads"_a);
}

}  // namespace okforest
