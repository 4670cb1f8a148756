#include "core/grow.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>

#include "bindings/arrays.hpp"
#include "bindings/forest.hpp"
#include "bindings/interrupt.hpp"
#include "core/kernels.hpp"

namespace okforest {

namespace {

GrowthOrder growth_order(const std::string& name) {
  if (name == "depth") return GrowthOrder::depth;
  if (name == "variance") return GrowthOrder::variance;
  if (name == "gain") return GrowthOrder::gain;
  throw std::invalid_argument("order is \"" + name + "\"; use \"depth\", \"variance\" or \"gain\"");
}

void check_length(const std::string& name, std::int64_t n, std::int64_t n_rows) {
  if (n == n_rows) return;
  throw std::invalid_argument(name + " has length " + std::to_string(n) + "; outputs has length " +
                              std::to_string(n_rows));
}

void check_weights(std::span<const double> weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  const bool negative = std::ranges::any_of(weights, [](double w) { return w < 0.0; });
  if (negative || !(sum > 0.0 && std::isfinite(sum))) {
    throw std::invalid_argument("row_weight must be >= 0, and its sum positive and finite");
  }
}

NamedArrays grow(const AnyInputs& X, const Matrix<double>& outputs, bool gram,
                 const Vector<double>& row_weight, std::uint64_t seed, std::int64_t first_tree,
                 std::int64_t n_trees, std::int64_t n_draws, int n_threads,
                 const std::string& order, bool random_splits, bool frobenius,
                 std::int32_t max_features, bool ignore_constant, std::int32_t max_depth,
                 std::int32_t max_leaf_nodes, double min_samples_split, double min_samples_leaf,
                 double min_impurity_decrease, bool stop_when_pure,
                 const Vector<std::int32_t>& n_categories, nb::object progress,
                 const std::optional<Vector<double>>& row_sums,
                 const std::optional<Vector<double>>& row_errors,
                 const std::optional<Vector<std::int32_t>>& classes) {
  const MatrixView y = view(outputs);
  if (gram && y.n_cols != y.n_rows) throw std::invalid_argument("the Gram matrix is not square");
  check_weights(view(row_weight));
  if (n_threads < 1 || n_trees < 0) {
    throw std::invalid_argument("n_threads must be at least 1 and n_trees at least 0");
  }
  if (n_draws < 0 || n_draws > std::numeric_limits<std::int32_t>::max()) {
    throw std::invalid_argument("n_draws is " + std::to_string(n_draws) +
                                "; it must be between 0 and 2147483647");
  }
  if (frobenius && !gram) {
    throw std::invalid_argument("the Frobenius rule needs a Gram matrix; pass gram=True");
  }
  if (classes) {
    check_length("classes", static_cast<std::int64_t>(classes->size()), y.n_rows);
    if (y.n_rows == 0 || y.n_cols != 0 || gram || std::ranges::min(view(*classes)) < 0) {
      throw std::invalid_argument("classes must be >= 0, and outputs have no columns with them");
    }
  }
  if (y.n_cols == 0 && !classes && !random_splits && !stop_when_pure) {
    throw std::invalid_argument("outputs without columns need random splits to grow without them");
  }
  if (order == "depth" && max_leaf_nodes < y.n_rows) {
    throw std::invalid_argument(
        "order=\"depth\" has no limit of leaves; use order=\"variance\" or order=\"gain\"");
  }
  const Rules rules{random_splits ? SplitKind::random : SplitKind::best,
                    frobenius ? Criterion::frobenius : Criterion::variance,
                    growth_order(order),
                    max_features,
                    ignore_constant,
                    max_depth,
                    max_leaf_nodes,
                    min_samples_split,
                    min_samples_leaf,
                    min_impurity_decrease,
                    stop_when_pure,
                    view(n_categories)};
  const auto known = [&](const char* name, const std::optional<Vector<double>>& values) {
    if (!values) return std::span<const double>{};
    check_length(name, static_cast<std::int64_t>(values->size()), y.n_rows);
    return view(*values);
  };
  const KnownRows rows{known("row_sums", row_sums), known("row_errors", row_errors),
                       classes ? view(*classes) : std::span<const std::int32_t>{}};
  const ForestPlan plan{seed, first_tree, n_trees, static_cast<std::int32_t>(n_draws), n_threads};

  Signals signals;
  const auto report = [&](std::int64_t n_done) {
    return signals.poll([&] {
      if (!progress.is_none()) progress(n_done);
    });
  };
  const auto grow_on = [&](const auto& inputs) {
    check_length("X", inputs.n_rows, y.n_rows);
    check_length("row_weight", static_cast<std::int64_t>(row_weight.size()), y.n_rows);
    const auto counts = view(n_categories);
    if (inputs.n_cols != static_cast<std::int64_t>(counts.size()) ||
        std::ranges::any_of(counts, [](auto n) { return n < 0; })) {
      throw std::invalid_argument("n_categories must have one entry >= 0 for each feature");
    }
    if (frobenius && std::ranges::any_of(counts, [](auto n) { return n > 0; })) {
      throw std::invalid_argument("the Frobenius rule does not support categorical features");
    }
    nb::gil_scoped_release nogil;
    return grow_forest(inputs, y, gram ? OutputForm::gram : OutputForm::factor, rows,
                       view(row_weight), rules, plan, report);
  };
  Forest forest =
      std::visit([&](const auto& x) { return grow_on(inputs_of<ColumnInputs>(x, y.n_rows)); }, X);
  signals.rethrow();
  return arrays_of(std::move(forest));
}

}  // namespace

void bind_grow(nb::module_& m) {
  using namespace nb::literals;
  m.def("simd_level", [] { return std::string(kernels().level); });
  m.def(
      "choose_simd_level", [](const std::string& level) { return choose_kernels(level); },
      "level"_a);
  m.def("grow", &grow, nb::kw_only(), "X"_a.noconvert(), "outputs"_a.noconvert(), "gram"_a,
        "row_weight"_a.noconvert(), "seed"_a, "first_tree"_a, "n_trees"_a, "n_draws"_a,
        "n_threads"_a, "order"_a, "random_splits"_a, "frobenius"_a, "max_features"_a,
        "ignore_constant"_a, "max_depth"_a, "max_leaf_nodes"_a, "min_samples_split"_a,
        "min_samples_leaf"_a, "min_impurity_decrease"_a, "stop_when_pure"_a,
        "n_categories"_a.noconvert(), "progress"_a.none(), "row_sums"_a.noconvert() = nb::none(),
        "row_errors"_a.noconvert() = nb::none(), "classes"_a.noconvert() = nb::none());
}

}  // namespace okforest
