// Grows trees with more and with fewer threads than trees, to the end and interrupted, for every
// form of the outputs, and trees of boosting on bins. To be run with the thread sanitizer.
#include <cstdio>
#include <random>
#include <vector>

#include "core/bins.hpp"
#include "core/grow.hpp"
#include "core/histograms.hpp"
#include "core/inputs.hpp"

namespace {

using namespace okforest;

constexpr std::int64_t kRows = 9000, kFeatures = 6;

enum class Outputs { vectors, pair, number, classes };

std::vector<double> outputs_of(const std::vector<float>& X, Outputs kind, std::int64_t n_cols) {
  std::mt19937 random(1);
  std::normal_distribution<double> noise;
  std::vector<double> y;
  for (std::int64_t i = 0; i < kRows; ++i) {
    const std::int64_t own_class = (X[i * kFeatures] > 0) + 2 * (X[i * kFeatures + 1] > 0);
    for (std::int64_t j = 0; j < n_cols; ++j) {
      y.push_back(kind == Outputs::classes ? double(j == own_class)
                                           : noise(random) + X[i * kFeatures]);
    }
  }
  return y;
}

struct Case {
  Outputs kind;
  std::int64_t n_cols;
};

// Prints the number of leaves of each tree.
void grow_on_bins(const DenseInputs<float>& X, std::vector<double> y, std::int64_t n_cols,
                  const std::vector<double>& weight) {
  Watch watch([] { return true; });
  BinnedRounds rounds(Bins(X, weight, kMostBins, 7, 4, watch), 4);
  const std::vector<double> errors(kRows, 0.0);
  const Rules rules{SplitKind::best,
                    Criterion::variance,
                    GrowthOrder::variance,
                    3,
                    false,
                    12,
                    31,
                    2.0,
                    1.0,
                    0.0,
                    true,
                    {}};
  for (std::uint64_t m = 0; m < 5; ++m) {
    const BinnedTree grown =
        rounds.grow(MutableMatrix{y.data(), kRows, n_cols}, weight, errors, rules, m, 0.1, watch);
    std::printf("%zu ", grown.means.size() / static_cast<std::size_t>(n_cols));
  }
}

}  // namespace

int main() {
  std::mt19937 random(0);
  std::normal_distribution<float> normal;
  std::vector<float> X(kRows * kFeatures);
  for (auto& x : X) x = normal(random);
  const DenseInputs<float> inputs{X.data(), kRows, kFeatures, kFeatures, 1};
  const std::vector<double> weight(kRows, 1.0);
  const std::vector<std::int32_t> n_categories(kFeatures, 0);
  for (const Case& one : {Case{Outputs::vectors, 20}, Case{Outputs::pair, 2},
                          Case{Outputs::number, 1}, Case{Outputs::classes, 4}}) {
    const std::vector<double> y = outputs_of(X, one.kind, one.n_cols);
    for (const auto split : {SplitKind::best, SplitKind::random}) {
      const Rules rules{
          split, Criterion::variance, GrowthOrder::depth, 3, false, 12, 1 << 30, 2.0, 1.0, 0.0,
          true,  n_categories};
      for (const std::int64_t n_trees : {1, 2, 5}) {
        for (const std::int32_t n_draws : {0, 9000}) {
          for (const int most_reports : {1 << 30, 2}) {
            int n_reports = 0;
            const Forest forest =
                grow_forest(inputs, MatrixView{y.data(), kRows, one.n_cols}, OutputForm::factor, {},
                            weight, rules, ForestPlan{7, 0, n_trees, n_draws, 4},
                            [&](std::int64_t) { return ++n_reports <= most_reports; });
            std::printf("%zu ", forest.feature.size());
          }
        }
      }
    }
  }
  for (const std::int64_t n_cols : {1, 20}) {
    grow_on_bins(inputs, outputs_of(X, Outputs::vectors, n_cols), n_cols, weight);
  }
  std::printf("\n");
}
