#include "core/prune.hpp"

#include "bindings/arrays.hpp"
#include "bindings/forest.hpp"

namespace okforest {

namespace {

using PathArrays = nb::typed<nb::tuple, Result<double>, Result<double>>;

ForestView one_tree(const NamedArrays& arrays) {
  const ForestView forest = forest_view(arrays);
  if (forest.n_trees() != 1 || forest.left.empty()) {
    throw std::invalid_argument("pruning takes one tree at a time");
  }
  return forest;
}

PathArrays pruning_path_binding(const NamedArrays& tree) {
  PruningPath path = pruning_path(one_tree(tree));
  return PathArrays(
      nb::make_tuple(to_numpy(std::move(path.alphas)), to_numpy(std::move(path.costs))));
}

Result<std::int8_t> prune_binding(const NamedArrays& tree, double alpha) {
  return to_numpy(prune(one_tree(tree), alpha));
}

}  // namespace

void bind_prune(nb::module_& m) {
  using namespace nb::literals;
  m.def("pruning_path", &pruning_path_binding, "tree"_a);
  m.def("prune", &prune_binding, "tree"_a, "alpha"_a);
}

}  // namespace okforest
