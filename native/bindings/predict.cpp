#include "core/predict.hpp"

#include <nanobind/stl/pair.h>

#include <stdexcept>

#include "bindings/arrays.hpp"

namespace okforest {

namespace {

template <class T>
Result<std::int32_t, 2> apply_binding(const Inputs<T>& X, const Vector<std::int64_t>& node_offsets,
                                      const Vector<std::int32_t>& feature,
                                      const Vector<double>& threshold,
                                      const Vector<std::int32_t>& left, int n_threads) {
  ForestView forest{};
  forest.node_offsets = view(node_offsets);
  forest.feature = view(feature);
  forest.threshold = view(threshold);
  forest.left = view(left);
  const auto n_rows = static_cast<std::size_t>(X.shape(0));
  const auto n_trees = static_cast<std::size_t>(forest.n_trees());
  std::vector<std::int32_t> leaves(n_rows * n_trees);
  {
    nb::gil_scoped_release nogil;
    apply(input_view(X), forest, n_threads, leaves);
  }
  return to_numpy<std::int32_t, 2>(std::move(leaves), {n_rows, n_trees});
}

using CsrArrays = nb::typed<nb::tuple, Result<double>, Result<std::int32_t>, Result<std::int64_t>>;

CsrArrays leaf_weights_binding(const Matrix<std::int32_t>& leaves,
                               const Vector<std::int64_t>& node_offsets,
                               const Vector<std::int64_t>& member_offsets,
                               const Vector<double>& weight, const Vector<std::int32_t>& begin,
                               const Vector<std::int32_t>& end, const Vector<std::int32_t>& members,
                               const Vector<double>& row_weight, int n_threads) {
  ForestView forest{};
  forest.node_offsets = view(node_offsets);
  forest.member_offsets = view(member_offsets);
  forest.weight = view(weight);
  forest.begin = view(begin);
  forest.end = view(end);
  forest.members = view(members);
  forest.row_weight = view(row_weight);
  SparseRows rows;
  {
    nb::gil_scoped_release nogil;
    rows = leaf_weights({leaves.data(), leaves.size()}, forest, n_threads);
  }
  return CsrArrays(nb::make_tuple(to_numpy(std::move(rows.values)),
                                  to_numpy(std::move(rows.columns)),
                                  to_numpy(std::move(rows.offsets))));
}

}  // namespace

void bind_predict(nb::module_& m) {
  using namespace nb::literals;
  const auto bind_apply = [&](auto* function) {
    m.def("apply", function, nb::kw_only(), "X"_a.noconvert(), "node_offsets"_a.noconvert(),
          "feature"_a.noconvert(), "threshold"_a.noconvert(), "left"_a.noconvert(), "n_threads"_a);
  };
  bind_apply(&apply_binding<float>);
  bind_apply(&apply_binding<double>);
  m.def("leaf_weights", &leaf_weights_binding, nb::kw_only(), "leaves"_a.noconvert(),
        "node_offsets"_a.noconvert(), "member_offsets"_a.noconvert(), "weight"_a.noconvert(),
        "begin"_a.noconvert(), "end"_a.noconvert(), "members"_a.noconvert(),
        "row_weight"_a.noconvert(), "n_threads"_a);
}

}  // namespace okforest
