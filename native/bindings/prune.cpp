#include "core/prune.hpp"

#include "bindings/arrays.hpp"
#include "bindings/forest.hpp"
#include "bindings/interrupt.hpp"

namespace okforest {

namespace {

ForestView one_tree(const NamedArrays& arrays) {
  const ForestView forest = forest_view(arrays);
  if (forest.n_trees() != 1 || forest.left.empty()) {
    throw std::invalid_argument("pruning needs the arrays of exactly one tree");
  }
  return forest;
}

std::tuple<Result<double>, Result<double>> pruning_path_binding(const NamedArrays& tree) {
  const ForestView view = one_tree(tree);
  PruningPath path = interruptible([&](Watch& watch) { return pruning_path(view, watch); });
  return {to_numpy(std::move(path.alphas)), to_numpy(std::move(path.costs))};
}

Result<std::int8_t> prune_binding(const NamedArrays& tree, double alpha) {
  const ForestView view = one_tree(tree);
  return to_numpy(interruptible([&](Watch& watch) { return prune(view, alpha, watch); }));
}

}  // namespace

void bind_prune(nb::module_& m) {
  using namespace nb::literals;
  m.def("pruning_path", &pruning_path_binding, "tree"_a);
  m.def("prune", &prune_binding, "tree"_a, "alpha"_a);
}

}  // namespace okforest
