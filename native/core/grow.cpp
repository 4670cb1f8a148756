#include "core/grow.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>

#include "core/bootstrap.hpp"
#include "core/classes.hpp"
#include "core/factor.hpp"
#include "core/frobenius.hpp"
#include "core/gram.hpp"
#include "core/grower.hpp"
#include "core/hybrid.hpp"
#include "core/parallel.hpp"
#include "core/rowset.hpp"

namespace okforest {

namespace {

// From this number of trees on, copying the inputs pays off.
constexpr std::int64_t kMinTreesToCopy = 8;

// From this number of times that a feature is expected to be sorted, in nodes of as many rows as
// there are, ranks pay off.
constexpr double kMinUses = 2.0;

// Below this rank of the outputs, and below this size of a branch, Gram matrices do not pay off.
constexpr std::int64_t kLeastHybridRank = 16;
constexpr std::int64_t kLeastHybridRows = 8;

// The top of a tree is grown down to nodes of 1 / kStems of its rows, of at least kLeastStem.
// Branches are grown from these nodes, by any thread.
constexpr std::size_t kStems = 16;
constexpr std::size_t kLeastStem = 2048;

// The weight and the count of a row are how often it was drawn.
Rowset draw_rows(const Bootstrap& bootstrap, std::int32_t n_draws, std::uint64_t seed) {
  Rowset drawn;
  const std::vector<std::int32_t> times = bootstrap.draw(n_draws, derive(seed, 0));
  drawn.weight.assign(times.begin(), times.end());
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (times[i] > 0) drawn.rows.push_back(static_cast<std::int32_t>(i));
  }
  return drawn;
}

// The samples that a tree is grown on, as stopping rules count them.
double samples_of(std::span<const double> row_weight, const ForestPlan& plan) {
  if (plan.n_draws > 0) return plan.n_draws;
  double sum = 0.0;
  for (const double weight : row_weight) sum += weight > 0.0 ? std::max(1.0, weight) : 0.0;
  return sum;
}

void finish(Tree& tree, const std::optional<Rowset>& drawn, int exponent) {
  if (drawn) {
    for (const auto member : tree.members) {
      tree.times.push_back(static_cast<std::int32_t>(drawn->weight[member]));
    }
    return;
  }
  scale_sums(tree, exponent);
}

// Grows trees with one scorer per thread, from `make_scorer`.
template <class Inputs, class MakeScorer>
Forest grow_with(Inputs X, const MakeScorer& make_scorer, std::span<const double> row_errors,
                 std::span<const double> row_weight, const Rules& rules, const ForestPlan& plan,
                 Pace& pace, const std::function<bool(std::int64_t)>& report) {
  const Rowset all = rowset_of(row_weight);
  std::optional<Bootstrap> bootstrap;
  if (plan.n_draws > 0) bootstrap.emplace(row_weight);

  // If X does not fit in cache, large nodes read their features from a column-major copy.
  std::optional<Ranks<Inputs>> ranks;
  if constexpr (Inputs::is_dense) {
    if (rules.split_kind == SplitKind::random && plan.n_trees >= kMinTreesToCopy &&
        X.exceeds_cache() && X.row_stride != 1) {
      X.copy_columns(pace);
    }
    if (rules.split_kind == SplitKind::best && !Inputs::has_bytes) {
      const double n_uses = static_cast<double>(plan.n_trees) *
                            std::bit_width(static_cast<std::uint64_t>(X.n_rows)) *
                            std::min<double>(rules.max_features, X.n_cols) / X.n_cols;
      if (n_uses >= kMinUses) ranks.emplace(X);
    }
  }

  using S = typename decltype(make_scorer())::element_type;
  std::vector<std::unique_ptr<Grower<Inputs, S>>> growers(static_cast<std::size_t>(plan.n_threads));
  const auto grower_of = [&](std::int64_t worker, const std::atomic<bool>& stopped) -> auto& {
    auto& grower = growers[worker];
    if (!grower) {
      grower = std::make_unique<Grower<Inputs, S>>(X, make_scorer(), rules,
                                                   ranks ? &*ranks : nullptr, stopped);
    }
    return *grower;
  };
  const auto seed_of = [&](std::int64_t t) {
    return derive(plan.seed, static_cast<std::uint64_t>(plan.first_tree + t));
  };

  // Best-first growth, and the Frobenius rule, need all nodes of a tree.
  const bool has_stems =
      rules.order == GrowthOrder::depth && rules.criterion == Criterion::variance;

  struct Branch {
    std::int64_t tree;
    Stem stem;
    Tree grown;
  };
  std::vector<Tree> trees(static_cast<std::size_t>(plan.n_trees));
  std::vector<std::optional<Rowset>> drawn(trees.size());
  const auto sample_of = [&](std::int64_t t) -> Sample {
    const Rowset& of = drawn[t] ? *drawn[t] : all;
    return {of.rows, of.weight, of.count.empty() ? of.weight : of.count, of.plain, row_errors};
  };
  const auto grow_top = [&](std::int64_t t, Grower<Inputs, S>& grower) {
    if (bootstrap) drawn[t] = draw_rows(*bootstrap, plan.n_draws, seed_of(t));
    const Sample sample = sample_of(t);
    std::vector<Branch> branches;
    std::vector<Stem> left;
    const std::size_t stem_rows =
        has_stems ? std::max(sample.rows.size() / kStems, kLeastStem) : std::size_t{0};
    trees[t] = std::move(grower.grow(
        sample, {{sample.rows.begin(), sample.rows.end()}, 0, seed_of(t)}, stem_rows, left));
    for (Stem& stem : left) branches.push_back({t, std::move(stem), {}});
    return branches;
  };
  const auto grow_branch = [&](Branch& branch, Grower<Inputs, S>& grower) {
    std::vector<Stem> none;
    branch.grown = std::move(grower.grow(sample_of(branch.tree), branch.stem, 0, none));
  };
  Joiner joiner(plan.n_trees);
  const auto join = [&](std::int64_t t, const std::vector<Branch>& branches) {
    for (const Branch& branch : branches) {
      if (branch.tree == t) trees[t].graft(branch.stem.leaf, branch.grown);
    }
    finish(trees[t], drawn[t], all.exponent);
    joiner.add(t, std::move(trees[t]));
    drawn[t].reset();
  };

  if (plan.n_trees >= plan.n_threads) {
    const auto grow_tree = [&](std::int64_t t, std::int64_t worker,
                               const std::atomic<bool>& stopped) {
      Grower<Inputs, S>& grower = grower_of(worker, stopped);
      std::vector<Branch> branches = grow_top(t, grower);
      for (Branch& branch : branches) grow_branch(branch, grower);
      join(t, branches);
    };
    if (!supervised_for(plan.n_trees, plan.n_threads, grow_tree, report)) return {};
    return joiner.take();
  }

  // With fewer trees than threads, branches are shared between threads.
  std::vector<Branch> branches;
  std::mutex mutex;
  const auto none_done = [&](std::int64_t) { return report(0); };
  const auto start = [&](std::int64_t t, std::int64_t worker, const std::atomic<bool>& stopped) {
    std::vector<Branch> some = grow_top(t, grower_of(worker, stopped));
    std::lock_guard lock(mutex);
    std::ranges::move(some, std::back_inserter(branches));
  };
  if (!supervised_for(plan.n_trees, plan.n_threads, start, none_done)) return {};
  std::ranges::sort(branches, std::greater{},
                    [](const Branch& branch) { return branch.stem.rows.size(); });
  for (auto& grower : growers) grower.reset();  // which refer to the flag of the first call
  const auto go_on = [&](std::int64_t k, std::int64_t worker, const std::atomic<bool>& stopped) {
    grow_branch(branches[k], grower_of(worker, stopped));
  };
  const auto n_branches = static_cast<std::int64_t>(branches.size());
  if (!supervised_for(n_branches, plan.n_threads, go_on, none_done)) return {};
  for (std::int64_t t = 0; t < plan.n_trees; ++t) join(t, branches);
  return report(plan.n_trees) ? joiner.take() : Forest{};
}

}  // namespace

template <class Inputs>
Forest grow_forest(const Inputs& X, const MatrixView& outputs, OutputForm form,
                   const KnownRows& known, std::span<const double> row_weight, const Rules& given,
                   const ForestPlan& plan, const std::function<bool(std::int64_t)>& report) try {
  Watch watch([&] { return report(0); });  // while preparing, before the first tree
  Pace pace(watch);
  Rules rules = given;
  // If a tree cannot have more leaves than the limit, the order of growth does not matter. The
  // Frobenius rule is different: what a split gains depends on those before it.
  const std::int64_t most_leaves =
      std::min(outputs.n_rows, std::int64_t{1} << std::clamp(rules.max_depth, 0, 62));
  if (rules.max_leaf_nodes >= most_leaves && rules.criterion == Criterion::variance) {
    rules.order = GrowthOrder::depth;
  }
  const auto grow = [&](const auto& make_scorer) {
    return grow_with(X, make_scorer, known.errors, row_weight, rules, plan, pace, report);
  };
  if (rules.criterion == Criterion::frobenius) {
    // The memory of every thread is proportional to this number.
    const double most =
        samples_of(row_weight, plan) / at_least(std::max(1.0, rules.min_samples_leaf));
    const std::int64_t n_leaves = std::min(
        {most_leaves, std::int64_t{rules.max_leaf_nodes}, static_cast<std::int64_t>(most)});
    return grow([&] { return std::make_unique<FrobeniusScorer>(outputs, n_leaves); });
  }
  if (form == OutputForm::gram) {
    // For the random splits of a single tree, the copy costs more than it saves.
    const bool copied = rules.split_kind == SplitKind::best || plan.n_trees > 1;
    const AlignedArray<float> panels = copied ? panels_of(outputs, pace) : AlignedArray<float>{};
    const GramOutputs gram{
        outputs, {panels.empty() ? nullptr : panels.data(), outputs.n_rows}, known.sums};
    return grow([&] { return std::make_unique<GramScorer>(gram); });
  }
  if (const auto classes = known.classes.empty() ? find_classes(outputs, pace)
                                                 : std::optional(outputs_of(known.classes))) {
    return grow([&] { return std::make_unique<ClassScorer>(*classes); });
  }
  const FactorOutputs factor(outputs, pace);
  // Computing the Gram matrix of a branch pays off if the branch has far fewer rows than the rank,
  // and if enough features are tried. Best-first growth jumps between branches, and does without.
  const std::int64_t most_rows =
      rules.order == GrowthOrder::depth && outputs.n_cols >= kLeastHybridRank
          ? std::min({outputs.n_cols / 2, std::int64_t{2} * rules.max_features, outputs.n_rows})
          : 0;
  if (most_rows < kLeastHybridRows) {
    return grow([&] { return std::make_unique<FactorScorer>(factor); });
  }
  return grow([&] { return std::make_unique<HybridScorer>(factor, most_rows); });
} catch (const Stopped&) {
  return {};
}

// Compiled once per type of inputs, at the same time.
template Forest grow_forest(const OKFOREST_INPUTS&, const MatrixView&, OutputForm, const KnownRows&,
                            std::span<const double>, const Rules&, const ForestPlan&,
                            const std::function<bool(std::int64_t)>&);

}  // namespace okforest
