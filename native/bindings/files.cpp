#include <nanobind/stl/string.h>

#include "bindings/arrays.hpp"
#include "bindings/forest.hpp"
#include "bindings/interrupt.hpp"
#include "files/check.hpp"
#include "files/crc32.hpp"

namespace okforest {

namespace {

std::string problem_of_trees(const NamedArrays& trees, std::int64_t n_features) {
  const ForestView forest = forest_view(trees);
  return interruptible([&](Watch& watch) { return problem_of(forest, n_features, watch); });
}

std::uint32_t crc32_binding(const Vector<std::uint8_t>& bytes, std::uint32_t before) {
  const std::span<const std::uint8_t> all(bytes.data(), bytes.size());
  return interruptible([&](Watch& watch) {
    constexpr std::size_t block = 1 << 24;
    std::uint32_t crc = before;
    for (std::size_t begin = 0; begin < all.size(); begin += block) {
      watch.poll();
      crc = crc32(all.subspan(begin, std::min(block, all.size() - begin)), crc);
    }
    return crc;
  });
}

}  // namespace

void bind_files(nb::module_& m) {
  using namespace nb::literals;
  m.def("crc32", &crc32_binding, "bytes"_a.noconvert(), "before"_a);
  m.def("problem_of_trees", &problem_of_trees, "trees"_a, "n_features"_a);
}

}  // namespace okforest
