#include "core/histograms.hpp"

#include <nanobind/stl/string.h>

#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>

#include "bindings/arrays.hpp"
#include "bindings/forest.hpp"
#include "bindings/interrupt.hpp"

namespace okforest {

namespace {

// Inputs in bins, and the trees that are grown on them.
class BinnedRoundsBinding {
 public:
  BinnedRoundsBinding(const AnyInputs& X, const Vector<double>& row_weight, std::int32_t max_bins,
                      std::uint64_t seed, int n_threads)
      : rounds_(make_bins(X, row_weight, max_bins, seed, n_threads), n_threads),
        row_weight_(view(row_weight).begin(), view(row_weight).end()) {}

  // Returns the tree, the leaf of each row, and what was subtracted in each leaf.
  std::tuple<NamedArrays, Result<std::int32_t>, Result<double, 2>> grow(
      const Mutable<double, 2>& values, const Vector<double>& row_weight,
      const Vector<double>& row_errors, std::uint64_t seed, std::uint64_t number, double scale,
      bool by_gain, std::int32_t max_features, std::int32_t max_depth, std::int32_t max_leaf_nodes,
      double min_samples_split, double min_samples_leaf, double min_impurity_decrease,
      bool stop_when_pure) {
    const MutableMatrix y = view(values);
    const auto n = static_cast<std::int64_t>(row_weight.size());
    if (y.n_rows != rounds_.bins().n_rows() || n != y.n_rows ||
        static_cast<std::int64_t>(row_errors.size()) != n || y.n_cols < 1) {
      throw std::invalid_argument("values, row_weight and row_errors do not fit the bins");
    }
    const std::span<const double> weights = view(row_weight);
    bool positive = false;
    for (std::int64_t i = 0; i < n; ++i) {
      const double weight = weights[i];
      if (!(weight >= 0.0) || (weight > 0.0 && row_weight_[i] == 0.0)) {
        throw std::invalid_argument("row_weight is positive where that of the bins is not");
      }
      positive |= weight > 0.0;
    }
    if (!positive) throw std::invalid_argument("row_weight is zero everywhere");
    const Rules rules{.split_kind = SplitKind::best,
                      .criterion = Criterion::variance,
                      .order = by_gain ? GrowthOrder::gain : GrowthOrder::variance,
                      .max_features = max_features,
                      .ignore_constant = false,
                      .max_depth = max_depth,
                      .max_leaf_nodes = max_leaf_nodes,
                      .min_samples_split = min_samples_split,
                      .min_samples_leaf = min_samples_leaf,
                      .min_impurity_decrease = min_impurity_decrease,
                      .stop_when_pure = stop_when_pure,
                      .n_categories = {}};
    BinnedTree grown = interruptible([&](Watch& watch) {
      return rounds_.grow(y, weights, view(row_errors), rules, derive(seed, number), scale, watch);
    });
    const std::size_t n_leaves = grown.means.size() / values.shape(1);
    Joiner joiner(1);
    joiner.add(0, std::move(grown.tree));
    return {arrays_of(joiner.take()), to_numpy(std::move(grown.places)),
            to_numpy<2>(std::move(grown.means), {n_leaves, values.shape(1)})};
  }

 private:
  static Bins make_bins(const AnyInputs& X, const Vector<double>& row_weight, std::int32_t max_bins,
                        std::uint64_t seed, int n_threads) {
    if (max_bins < 2 || max_bins > kMostBins) {
      throw std::invalid_argument("max_bins is " + std::to_string(max_bins) +
                                  "; it must be between 2 and 255");
    }
    const auto of = [&]<class T>(const T& x) -> std::optional<Bins> {
      if constexpr (requires { x.shape(0); }) {
        const auto inputs = inputs_of<ColumnInputs>(x, 0);
        if (inputs.n_rows != static_cast<std::int64_t>(row_weight.size())) {
          throw std::invalid_argument("X and row_weight have different lengths");
        }
        return interruptible([&](Watch& watch) {
          return Bins(inputs, view(row_weight), max_bins, seed, n_threads, watch);
        });
      }
      throw std::invalid_argument("sparse inputs have no bins");
    };
    return *std::visit(of, X);
  }

  BinnedRounds rounds_;
  std::vector<double> row_weight_;
};

}  // namespace

void bind_histograms(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<BinnedRoundsBinding>(m, "BinnedRounds")
      .def(nb::init<const AnyInputs&, const Vector<double>&, std::int32_t, std::uint64_t, int>(),
           "X"_a.noconvert(), "row_weight"_a.noconvert(), "max_bins"_a, "seed"_a, "n_threads"_a)
      .def("grow", &BinnedRoundsBinding::grow, nb::kw_only(), "values"_a.noconvert(),
           "row_weight"_a.noconvert(), "row_errors"_a.noconvert(), "seed"_a, "number"_a, "scale"_a,
           "by_gain"_a, "max_features"_a, "max_depth"_a, "max_leaf_nodes"_a, "min_samples_split"_a,
           "min_samples_leaf"_a, "min_impurity_decrease"_a, "stop_when_pure"_a);
}

}  // namespace okforest
