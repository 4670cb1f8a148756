#include "core/grow.hpp"

#include <nanobind/stl/string.h>

#include <exception>
#include <stdexcept>
#include <string>

#include "bindings/arrays.hpp"

namespace okforest {

namespace {

using NamedArrays = nb::typed<nb::dict, nb::str, nb::any>;

GrowthOrder growth_order(const std::string& name) {
  if (name == "depth") return GrowthOrder::depth;
  if (name == "variance") return GrowthOrder::variance;
  if (name == "gain") return GrowthOrder::gain;
  throw std::invalid_argument("order is \"" + name + "\"; use \"depth\", \"variance\" or \"gain\"");
}

// The arrays of all trees, one after the other.
NamedArrays joined(std::vector<Tree>&& trees) {
  std::vector<std::int64_t> node_offsets{0}, member_offsets{0};
  for (const Tree& tree : trees) {
    node_offsets.push_back(node_offsets.back() + static_cast<std::int64_t>(tree.feature.size()));
    member_offsets.push_back(member_offsets.back() +
                             static_cast<std::int64_t>(tree.members.size()));
  }
  const auto join = [&](auto Tree::* field) {
    std::remove_reference_t<decltype(trees[0].*field)> all;
    std::size_t n = 0;
    for (const Tree& tree : trees) n += (tree.*field).size();
    all.reserve(n);
    for (Tree& tree : trees) {
      all.insert(all.end(), (tree.*field).begin(), (tree.*field).end());
      tree.*field = {};
    }
    return to_numpy(std::move(all));
  };
  NamedArrays result;
  result["node_offsets"] = to_numpy(std::move(node_offsets));
  result["member_offsets"] = to_numpy(std::move(member_offsets));
  result["feature"] = join(&Tree::feature);
  result["threshold"] = join(&Tree::threshold);
  result["left"] = join(&Tree::left);
  result["weight"] = join(&Tree::weight);
  result["variance"] = join(&Tree::variance);
  result["begin"] = join(&Tree::begin);
  result["end"] = join(&Tree::end);
  result["members"] = join(&Tree::members);
  return result;
}

template <class T>
NamedArrays grow(const Inputs<T>& X, const Matrix<double>& outputs, bool gram,
                 const Vector<double>& row_weight, std::uint64_t seed, std::int64_t first_tree,
                 std::int64_t n_trees, std::int64_t n_draws, int n_threads,
                 const std::string& order, bool random_splits, std::int32_t max_features,
                 std::int32_t max_depth, std::int32_t max_leaf_nodes, double min_samples_split,
                 double min_samples_leaf, double min_impurity_decrease, bool stop_when_pure,
                 nb::object progress) {
  const InputView<T> inputs = input_view(X);
  const MatrixView y{outputs.data(), static_cast<std::int64_t>(outputs.shape(0)),
                     static_cast<std::int64_t>(outputs.shape(1))};
  if (y.n_rows != inputs.n_rows || static_cast<std::int64_t>(row_weight.size()) != inputs.n_rows ||
      (gram && y.n_cols != y.n_rows)) {
    throw std::invalid_argument("X, outputs and row_weight differ in length");
  }
  const Rules rules{random_splits ? SplitKind::random : SplitKind::best,
                    growth_order(order),
                    max_features,
                    max_depth,
                    max_leaf_nodes,
                    min_samples_split,
                    min_samples_leaf,
                    min_impurity_decrease,
                    stop_when_pure};
  const ForestPlan plan{seed, first_tree, n_trees, n_draws, n_threads};

  // Only the calling thread touches Python: it looks for Ctrl-C and reports progress.
  std::exception_ptr interruption;
  const auto watch = [&](std::int64_t n_done) {
    nb::gil_scoped_acquire gil;
    try {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      if (!progress.is_none()) progress(n_done);
      return true;
    } catch (...) {
      interruption = std::current_exception();
      return false;
    }
  };
  std::vector<Tree> trees;
  {
    nb::gil_scoped_release nogil;
    trees = grow_forest(inputs, y, gram ? OutputForm::gram : OutputForm::factor, view(row_weight),
                        rules, plan, watch);
  }
  if (interruption) std::rethrow_exception(interruption);
  return joined(std::move(trees));
}

template <class T>
void bind(nb::module_& m) {
  using namespace nb::literals;
  m.def("grow", &grow<T>, nb::kw_only(), "X"_a.noconvert(), "outputs"_a.noconvert(), "gram"_a,
        "row_weight"_a.noconvert(), "seed"_a, "first_tree"_a, "n_trees"_a, "n_draws"_a,
        "n_threads"_a, "order"_a, "random_splits"_a, "max_features"_a, "max_depth"_a,
        "max_leaf_nodes"_a, "min_samples_split"_a, "min_samples_leaf"_a, "min_impurity_decrease"_a,
        "stop_when_pure"_a, "progress"_a.none());
}

}  // namespace

void bind_grow(nb::module_& m) {
  bind<float>(m);
  bind<double>(m);
}

}  // namespace okforest
