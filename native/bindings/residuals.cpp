#include "core/residuals.hpp"

#include <nanobind/stl/vector.h>

#include <algorithm>
#include <stdexcept>
#include <tuple>
#include <variant>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/forest.hpp"
#include "bindings/interrupt.hpp"

namespace okforest {

namespace {

// The leaves, after checking that all indices are within bounds.
LeavesView leaves_of(std::int64_t n_rows, const Vector<std::int64_t>& offsets,
                     const Vector<std::int32_t>& members, const Vector<double>& weights,
                     const Vector<std::int32_t>& places, double scale) {
  const LeavesView leaves{view(offsets), view(members), view(weights), view(places), scale};
  const bool sound = leaves.n_leaves() > 0 && are_offsets(leaves.offsets, leaves.members.size()) &&
                     leaves.weights.size() == leaves.members.size() &&
                     static_cast<std::int64_t>(leaves.places.size()) == n_rows &&
                     are_indices(leaves.members, n_rows) &&
                     are_indices(leaves.places, leaves.n_leaves());
  if (!sound) throw std::invalid_argument("the arrays of the leaves are inconsistent");
  return leaves;
}

Result<double, 2> subtract_means_binding(const Mutable<double, 2>& values,
                                         const Vector<std::int64_t>& offsets,
                                         const Vector<std::int32_t>& members,
                                         const Vector<double>& weights,
                                         const Vector<std::int32_t>& places, double scale,
                                         int n_threads) {
  const MutableMatrix matrix = view(values);
  const LeavesView leaves = leaves_of(matrix.n_rows, offsets, members, weights, places, scale);
  return to_numpy<2>(
      interruptible([&](Watch& w) { return subtract_means(matrix, leaves, n_threads, w); }),
      {static_cast<std::size_t>(leaves.n_leaves()), values.shape(1)});
}

Result<double> subtract_means_from_gram_binding(const Mutable<double, 2>& gram,
                                                const Vector<std::int64_t>& offsets,
                                                const Vector<std::int32_t>& members,
                                                const Vector<double>& weights,
                                                const Vector<std::int32_t>& places, double scale,
                                                int n_threads) {
  const MutableMatrix matrix = view(gram);
  if (matrix.n_rows != matrix.n_cols) throw std::invalid_argument("the Gram matrix is not square");
  const LeavesView leaves = leaves_of(matrix.n_rows, offsets, members, weights, places, scale);
  return to_numpy(interruptible(
      [&](Watch& w) { return subtract_means_from_gram(matrix, leaves, n_threads, w); }));
}

// The four arrays of the leaves of a tree, and its scale.
using Leaves = std::tuple<Vector<std::int64_t>, Vector<std::int32_t>, Vector<double>,
                          Vector<std::int32_t>, double>;

Result<double, 2> leaf_coefficients_binding(const std::vector<Leaves>& trees,
                                            const Vector<double>& initial, int n_threads) {
  const std::size_t n = initial.size();
  std::vector<LeavesView> views;
  std::vector<std::size_t> last_tree(n, trees.size());  // that each row is a member of
  for (const auto& [offsets, members, weights, places, scale] : trees) {
    const std::size_t tree = views.size();
    views.push_back(
        leaves_of(static_cast<std::int64_t>(n), offsets, members, weights, places, scale));
    for (const auto row : views.back().members) {
      if (last_tree[row] == tree) throw std::invalid_argument("a row is twice in a tree's leaves");
      last_tree[row] = tree;
    }
  }
  std::vector<double> coefficients = interruptible(
      [&](Watch& w) { return leaf_coefficients(views, view(initial), n_threads, w); });
  const std::size_t n_leaves = n == 0 ? 0 : coefficients.size() / n;
  return to_numpy<2>(std::move(coefficients), {n_leaves, n});
}

using AnyLeaves = std::variant<Matrix<std::uint8_t>, Matrix<std::uint16_t>, Matrix<std::uint32_t>>;

Result<double, 2> pull_back_binding(const NamedArrays& trees, const AnyLeaves& training_leaves,
                                    const Vector<double>& scales, const Vector<double>& initial,
                                    const Matrix<std::int32_t>& leaves, int n_threads) {
  const ForestView forest = forest_view(trees);
  const MatrixOf<const std::int32_t> reached = view(leaves);
  const auto n_rounds = reached.n_rows, n_train = static_cast<std::int64_t>(initial.size());
  const auto check = [](bool fits) {
    if (!fits) throw std::invalid_argument("the leaves of rounds do not fit the trees");
  };
  return std::visit(
      [&]<class Number>(const Matrix<Number>& numbers) {
        check(n_rounds <= forest.n_trees() && scales.size() >= leaves.shape(0) &&
              numbers.shape(0) >= leaves.shape(0) && numbers.shape(1) == initial.size() &&
              forest.row_weight.size() == initial.size());
        const Number* const of_training = data_of(numbers);
        for (std::int64_t m = 0; m < n_rounds; ++m) {
          const auto nodes = forest.left.subspan(
              forest.node_offsets[m], forest.node_offsets[m + 1] - forest.node_offsets[m]);
          const auto n_leaves = std::ranges::count_if(nodes, [](auto left) { return left < 0; });
          const std::span<const Number> row(of_training + m * n_train, initial.size());
          check(row.empty() ||
                static_cast<std::int64_t>(*std::ranges::max_element(row)) < n_leaves);
          check(are_indices({reached.row(m), leaves.shape(1)}, n_leaves));
        }
        return to_numpy<2>(interruptible([&](Watch& watch) {
                             return pull_back(forest, TrainingLeaves<Number>{of_training, n_train},
                                              view(scales), view(initial), reached, n_threads,
                                              watch);
                           }),
                           {leaves.shape(1), initial.size()});
      },
      training_leaves);
}

}  // namespace

void bind_residuals(nb::module_& m) {
  using namespace nb::literals;
  m.def("subtract_means", &subtract_means_binding, "values"_a.noconvert(), "offsets"_a.noconvert(),
        "members"_a.noconvert(), "weights"_a.noconvert(), "places"_a.noconvert(), "scale"_a,
        "n_threads"_a);
  m.def("subtract_means_from_gram", &subtract_means_from_gram_binding, "gram"_a.noconvert(),
        "offsets"_a.noconvert(), "members"_a.noconvert(), "weights"_a.noconvert(),
        "places"_a.noconvert(), "scale"_a, "n_threads"_a);
  m.def("pull_back", &pull_back_binding, "trees"_a, "training_leaves"_a.noconvert(),
        "scales"_a.noconvert(), "initial"_a.noconvert(), "leaves"_a.noconvert(), "n_threads"_a);
  m.def("leaf_coefficients", &leaf_coefficients_binding, "trees"_a.noconvert(),
        "initial"_a.noconvert(), "n_threads"_a);
}

}  // namespace okforest
