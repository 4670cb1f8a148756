#include "images/subwindows.hpp"

#include <nanobind/stl/vector.h>

#include <cstdint>
#include <stdexcept>

#include "bindings/arrays.hpp"
#include "bindings/interrupt.hpp"

namespace okforest {

namespace {

template <class T>
using Image = nb::ndarray<const T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

// The rows of an array of shape (n, 3) as squares.
std::span<const Square> squares_of(const Matrix<std::int32_t>& squares) {
  static_assert(sizeof(Square) == 3 * sizeof(std::int32_t));
  if (squares.shape(1) != 3) throw std::invalid_argument("squares must have three columns");
  return {reinterpret_cast<const Square*>(data_of(squares)), squares.shape(0)};
}

void check_within(const Square& square, std::int64_t height, std::int64_t width) {
  const std::int64_t row = square.row, col = square.col, side = square.side;
  if (row < 0 || col < 0 || side < 1 || row + side > height || col + side > width) {
    throw std::invalid_argument("a square is not within its image");
  }
}

Result<std::int32_t, 2> draw_squares_binding(const Vector<std::uint64_t>& seeds,
                                             const Matrix<std::int64_t>& places,
                                             std::size_t n_each) {
  static_assert(sizeof(Places) == 4 * sizeof(std::int64_t));
  if (places.shape(1) != 4 || places.shape(0) != seeds.size()) {
    throw std::invalid_argument("there must be four numbers for each seed");
  }
  const std::span<const Places> rows{reinterpret_cast<const Places*>(data_of(places)),
                                     seeds.size()};
  for (const Places& own : rows) {
    const std::int64_t most = own.least + own.n_sides;  // beyond the largest side
    if (own.least < 1 || own.n_sides < 1 || own.n_rows < most || own.n_cols < most ||
        own.n_rows > INT32_MAX || own.n_cols > INT32_MAX) {
      throw std::invalid_argument("an image has no such squares");
    }
  }
  const std::size_t n = seeds.size() * n_each;
  std::vector<std::int32_t> squares(3 * n);
  draw_squares(view(seeds), rows, static_cast<std::int64_t>(n_each),
               {reinterpret_cast<Square*>(squares.data()), n});
  return to_numpy<2>(std::move(squares), {n, 3});
}

template <class T>
Result<T, 2> cut_subwindows_binding(const std::vector<Image<T>>& images,
                                    const Vector<std::int32_t>& image,
                                    const Matrix<std::int32_t>& squares,
                                    const Vector<float>& angles, const Vector<bool>& mirrored,
                                    std::int64_t size, int n_threads) {
  const std::size_t n = squares.shape(0);
  const auto n_channels = images.empty() ? 1 : static_cast<std::int64_t>(images[0].shape(2));
  const Subwindows what{view(image),    squares_of(squares), view(angles),
                        view(mirrored), n_channels,          size};
  std::vector<ImageView<T>> views;
  for (const Image<T>& pixels : images) {
    if (static_cast<std::int64_t>(pixels.shape(2)) != n_channels) {
      throw std::invalid_argument("images have different numbers of channels");
    }
    views.push_back({data_of(pixels), static_cast<std::int64_t>(pixels.shape(0)),
                     static_cast<std::int64_t>(pixels.shape(1))});
  }
  const auto fits = [&](std::size_t length) { return length == 0 || length == n; };
  if (image.size() != n || !fits(angles.size()) || !fits(mirrored.size()) || size < 1 ||
      size > 4096) {
    throw std::invalid_argument("the arrays of the subwindows are inconsistent");
  }
  for (std::size_t k = 0; k < n; ++k) {
    if (what.image[k] < 0 || what.image[k] >= static_cast<std::int64_t>(views.size())) {
      throw std::invalid_argument("a subwindow belongs to no image");
    }
    const ImageView<T>& own = views[what.image[k]];
    check_within(what.squares[k], own.height, own.width);
  }
  const auto n_values = static_cast<std::size_t>(size * size * n_channels);
  std::vector<T> values(n * n_values);
  interruptible([&](Watch& watch) { cut_subwindows<T>(views, what, n_threads, watch, values); });
  return to_numpy<2>(std::move(values), {n, n_values});
}

void paste_subwindows_binding(const Matrix<std::int32_t>& squares, const Matrix<double>& maps,
                              std::int64_t grid, const Mutable<double, 3>& sums,
                              const Mutable<double, 2>& counts) {
  const std::size_t n_values = sums.shape(2);
  if (grid < 1 || grid > 4096 || maps.shape(0) != squares.shape(0) ||
      maps.shape(1) != static_cast<std::size_t>(grid * grid) * n_values ||
      counts.shape(0) != sums.shape(0) || counts.shape(1) != sums.shape(1)) {
    throw std::invalid_argument("the arrays of the maps are inconsistent");
  }
  const auto height = static_cast<std::int64_t>(sums.shape(0));
  const auto width = static_cast<std::int64_t>(sums.shape(1));
  const auto places = squares_of(squares);
  for (const Square& square : places) check_within(square, height, width);
  const PixelSums pixels{{data_of(sums), sums.size()}, {data_of(counts), counts.size()}, width};
  interruptible([&](Watch& watch) {
    paste_subwindows(places, {data_of(maps), maps.size()}, grid,
                     static_cast<std::int64_t>(n_values), watch, pixels);
  });
}

}  // namespace

void bind_subwindows(nb::module_& m) {
  using namespace nb::literals;
  m.def("draw_squares", &draw_squares_binding, "seeds"_a.noconvert(), "places"_a.noconvert(),
        "n_each"_a);
  m.def("cut_subwindows", &cut_subwindows_binding<std::uint8_t>, "images"_a.noconvert(),
        "image"_a.noconvert(), "squares"_a.noconvert(), "angles"_a.noconvert(),
        "mirrored"_a.noconvert(), "size"_a, "n_threads"_a);
  m.def("cut_subwindows", &cut_subwindows_binding<float>, "images"_a.noconvert(),
        "image"_a.noconvert(), "squares"_a.noconvert(), "angles"_a.noconvert(),
        "mirrored"_a.noconvert(), "size"_a, "n_threads"_a);
  m.def("paste_subwindows", &paste_subwindows_binding, "squares"_a.noconvert(),
        "maps"_a.noconvert(), "grid"_a, "sums"_a.noconvert(), "counts"_a.noconvert());
}

}  // namespace okforest
