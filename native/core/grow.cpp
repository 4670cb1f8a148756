#include "core/grow.hpp"

#include <algorithm>
#include <memory>
#include <optional>

#include "core/bootstrap.hpp"
#include "core/frobenius.hpp"
#include "core/gram.hpp"
#include "core/grower.hpp"
#include "core/hybrid.hpp"
#include "core/panels.hpp"
#include "core/parallel.hpp"

namespace okforest {

namespace {

// From this number of trees on, copying the inputs pays off.
constexpr std::int64_t kMinTreesToCopy = 8;

// Grows trees with one scorer per thread, from `make_scorer`.
template <class Inputs, class MakeScorer>
Forest grow_with(Inputs X, const MakeScorer& make_scorer, std::span<const double> row_weight,
                 const Rules& rules, const ForestPlan& plan, Pace& pace,
                 const std::function<bool(std::int64_t)>& report) {
  std::vector<std::int32_t> all_rows;
  std::vector<double> row_count(row_weight.size());
  for (std::size_t i = 0; i < row_weight.size(); ++i) {
    if (row_weight[i] > 0.0) all_rows.push_back(static_cast<std::int32_t>(i));
    // In stopping rules, a row of weight 3 counts as three rows, and a row of weight 0.1 as one.
    row_count[i] = std::max(1.0, row_weight[i]);
  }
  std::optional<Bootstrap> bootstrap;
  if (plan.n_draws > 0) bootstrap.emplace(row_weight);

  // If X does not fit in cache, large nodes read their features from a column-major copy.
  std::vector<typename Inputs::Element> columns;
  if constexpr (requires { X.copy_columns(pace); }) {
    if (rules.split_kind == SplitKind::random && plan.n_trees >= kMinTreesToCopy &&
        X.exceeds_cache() && X.row_stride != 1) {
      columns = X.copy_columns(pace);
      X.columns = columns.data();
    }
  }
  std::optional<Ranks<typename Inputs::Element>> sorted;
  if constexpr (requires { Ranks(X, rules.n_categories, pace); }) {
    if (rules.split_kind == SplitKind::best) sorted.emplace(X, rules.n_categories, pace);
  }
  const auto* const ranks = sorted ? &*sorted : nullptr;

  Joiner joiner(plan.n_trees);
  using Scorer = typename decltype(make_scorer())::element_type;
  struct Worker {
    std::unique_ptr<Scorer> scorer;
    std::unique_ptr<Grower<Inputs, Scorer>> grower;
  };
  std::vector<Worker> workers(static_cast<std::size_t>(plan.n_threads));
  const bool plain = std::ranges::all_of(row_weight, [](double w) { return w == 1.0; });
  const auto grow_one = [&](std::int64_t t, std::int64_t worker, const std::atomic<bool>& stopped) {
    auto& [scorer, grower] = workers[worker];
    if (!grower) {
      scorer = make_scorer();
      grower = std::make_unique<Grower<Inputs, Scorer>>(X, *scorer, rules, ranks, stopped);
    }
    const std::uint64_t seed = derive(plan.seed, static_cast<std::uint64_t>(plan.first_tree + t));
    if (!bootstrap) {
      return joiner.add(t, grower->grow({all_rows, row_weight, row_count, plain}, seed));
    }
    const auto times = bootstrap->draw(plan.n_draws, derive(seed, 0));
    const std::vector<double> weight(times.begin(), times.end());
    std::vector<std::int32_t> rows;
    for (const auto i : all_rows) {
      if (times[i] > 0) rows.push_back(i);
    }
    Tree& tree = grower->grow({rows, weight, weight, false}, seed);
    for (const auto member : tree.members) tree.times.push_back(times[member]);
    joiner.add(t, tree);
  };
  if (!supervised_for(plan.n_trees, plan.n_threads, grow_one, report)) return {};
  return joiner.take();
}

}  // namespace

template <class Inputs>
Forest grow_forest(const Inputs& X, const MatrixView& outputs, OutputForm form,
                   std::span<const double> row_weight, const Rules& rules, const ForestPlan& plan,
                   const std::function<bool(std::int64_t)>& report) try {
  Watch watch([&] { return report(0); });  // while preparing, before the first tree
  Pace pace(watch);
  if (rules.criterion == Criterion::frobenius) {
    const auto make = [&] { return std::make_unique<FrobeniusScorer>(outputs); };
    return grow_with(X, make, row_weight, rules, plan, pace, report);
  }
  if (form == OutputForm::gram) {
    const auto make = [&] { return std::make_unique<GramScorer>(outputs); };
    return grow_with(X, make, row_weight, rules, plan, pace, report);
  }
  if (outputs.n_cols <= 2) {
    const Panels<Lane> panels(outputs, pace);
    const auto make = [&] { return std::make_unique<FactorScorer<Lane>>(panels); };
    return grow_with(X, make, row_weight, rules, plan, pace, report);
  }
  const Panels<Lanes> panels(outputs, pace);
  // Computing the Gram matrix of a branch pays off if the branch has far fewer rows than the rank,
  // and if enough features are tried. Best-first growth jumps between branches, and does without.
  const std::int64_t most_rows =
      rules.order == GrowthOrder::depth
          ? std::min({outputs.n_cols / 2, std::int64_t{2} * rules.max_features, outputs.n_rows})
          : 0;
  if (outputs.n_cols < 16 || most_rows < 8) {
    const auto make = [&] { return std::make_unique<FactorScorer<Lanes>>(panels); };
    return grow_with(X, make, row_weight, rules, plan, pace, report);
  }
  const auto make = [&] { return std::make_unique<HybridScorer>(panels, most_rows); };
  return grow_with(X, make, row_weight, rules, plan, pace, report);
} catch (const Stopped&) {
  return {};
}

#define OKFOREST_INSTANTIATE(Inputs)                                                    \
  template Forest grow_forest(const Inputs&, const MatrixView&, OutputForm,             \
                              std::span<const double>, const Rules&, const ForestPlan&, \
                              const std::function<bool(std::int64_t)>&)
OKFOREST_INSTANTIATE(DenseInputs<float>);
OKFOREST_INSTANTIATE(DenseInputs<double>);
OKFOREST_INSTANTIATE(ColumnInputs<float>);
OKFOREST_INSTANTIATE(ColumnInputs<double>);
#undef OKFOREST_INSTANTIATE

}  // namespace okforest
