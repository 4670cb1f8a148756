#include "images/postings.hpp"

#include <stdexcept>

#include "bindings/arrays.hpp"
#include "bindings/interrupt.hpp"

namespace okforest {

namespace {

// Nodes are rows of two integers.
ByteTrees trees_of(const Matrix<std::uint32_t>& nodes, const Vector<std::int64_t>& offsets) {
  static_assert(sizeof(ByteNode) == 2 * sizeof(std::uint32_t));
  if (nodes.shape(1) != 2) throw std::invalid_argument("nodes must have two columns");
  return {{reinterpret_cast<const ByteNode*>(data_of(nodes)), nodes.shape(0)}, view(offsets)};
}

bool are_byte_trees_binding(const Matrix<std::uint32_t>& nodes, const Vector<std::int64_t>& offsets,
                            std::int64_t n_features) {
  const ByteTrees trees = trees_of(nodes, offsets);
  nb::gil_scoped_release nogil;
  return are_trees(trees, n_features);
}

Result<std::uint32_t, 2> reach_leaves_binding(const Matrix<std::uint32_t>& nodes,
                                              const Vector<std::int64_t>& offsets,
                                              const Matrix<std::uint8_t>& values, int n_threads) {
  const ByteTrees trees = trees_of(nodes, offsets);
  const auto n_trees = static_cast<std::size_t>(trees.n_trees());
  const std::size_t n_rows = values.shape(0);
  std::vector<std::uint32_t> leaves(n_rows * n_trees);
  interruptible([&](Watch& watch) {
    reach_leaves(trees, {data_of(values), values.size()},
                 static_cast<std::int64_t>(values.shape(1)), n_threads, watch, leaves);
  });
  return to_numpy<2>(std::move(leaves), {n_rows, n_trees});
}

// The postings of some leaves: found once, for sizes and for scores.
class FoundPostings {
 public:
  FoundPostings(const Vector<std::uint64_t>& offsets, const Vector<std::uint16_t>& low,
                const Vector<std::uint32_t>& image, const Vector<std::uint8_t>& count, int shift,
                const Vector<std::uint32_t>& leaves)
      : image_(image),
        count_(count),
        postings_{view(offsets), view(low), view(image), view(count), shift} {
    if (offsets.size() == 0 || image.size() != low.size() || count.size() != low.size() ||
        shift < 0 || shift > 16) {
      throw std::invalid_argument("the arrays of the postings are inconsistent");
    }
    nb::gil_scoped_release nogil;
    ranges_ = find_postings(postings_, view(leaves));
  }

  void add_sizes(const Vector<bool>& removed, const Mutable<std::uint64_t>& sizes) const {
    check(sizes.size());
    nb::gil_scoped_release nogil;
    okforest::add_sizes(postings_, ranges_, view(removed), {data_of(sizes), sizes.size()});
  }

  void add_scores(const Vector<std::uint32_t>& times, const Vector<std::uint64_t>& sizes,
                  const Mutable<double>& scores) const {
    check(times.size());
    check(sizes.size());
    nb::gil_scoped_release nogil;
    okforest::add_scores(postings_, ranges_, view(times), view(sizes),
                         {data_of(scores), scores.size()});
  }

 private:
  void check(std::size_t n) const {
    if (n != ranges_.size()) throw std::invalid_argument("there must be one number per leaf");
  }

  Vector<std::uint32_t> image_;  // kept alive
  Vector<std::uint8_t> count_;
  Postings postings_;  // offsets and low are not used after the constructor
  std::vector<PostingRange> ranges_;
};

}  // namespace

void bind_postings(nb::module_& m) {
  using namespace nb::literals;
  m.def("are_byte_trees", &are_byte_trees_binding, "nodes"_a.noconvert(), "offsets"_a.noconvert(),
        "n_features"_a);
  m.def("reach_leaves", &reach_leaves_binding, "nodes"_a.noconvert(), "offsets"_a.noconvert(),
        "values"_a.noconvert(), "n_threads"_a);
  nb::class_<FoundPostings>(m, "FoundPostings")
      .def(nb::init<const Vector<std::uint64_t>&, const Vector<std::uint16_t>&,
                    const Vector<std::uint32_t>&, const Vector<std::uint8_t>&, int,
                    const Vector<std::uint32_t>&>(),
           "offsets"_a.noconvert(), "low"_a.noconvert(), "image"_a.noconvert(),
           "count"_a.noconvert(), "shift"_a, "leaves"_a.noconvert())
      .def("add_sizes", &FoundPostings::add_sizes, "removed"_a.noconvert(), "sizes"_a.noconvert())
      .def("add_scores", &FoundPostings::add_scores, "times"_a.noconvert(), "sizes"_a.noconvert(),
           "scores"_a.noconvert());
}

}  // namespace okforest
