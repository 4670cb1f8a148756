// Square subwindows of images, resized to a fixed number of pixels; and the way back, from values
// of subwindows to the pixels that they cover.
#pragma once

#include <cstdint>
#include <span>

#include "core/watch.hpp"

namespace okforest {

// Pixels row by row, the channels of a pixel together.
template <class T>
struct ImageView {
  const T* data;
  std::int64_t height;
  std::int64_t width;
};

// A square of pixels, within its image.
struct Square {
  std::int32_t row;
  std::int32_t col;
  std::int32_t side;
};

// What the squares of an image are drawn from: sides from `least` on, and the rows and columns that
// a square of side zero could have.
struct Places {
  std::int64_t least;
  std::int64_t n_sides;
  std::int64_t n_rows;
  std::int64_t n_cols;
};

// Draws n_each squares of each image, uniformly: side, row and column, by the image's seed.
void draw_squares(std::span<const std::uint64_t> seeds, std::span<const Places> places,
                  std::int64_t n_each, std::span<Square> squares);

// Subwindows to cut: the image and the square of each, and optionally a rotation and a reflection.
// A subwindow turned by an angle is the largest such square within the square given.
struct Subwindows {
  std::span<const std::int32_t> image;
  std::span<const Square> squares;
  std::span<const float> angles;   // radians; empty: none is turned
  std::span<const bool> mirrored;  // left to right; empty: none is
  std::int64_t n_channels;
  std::int64_t size;  // pixels along each side of the result
};

// Writes size * size * n_channels values for each subwindow, by bilinear interpolation between the
// centres of pixels. Values of an integer type are rounded. Throws Stopped if the watch stops it.
template <class T>
void cut_subwindows(std::span<const ImageView<T>> images, const Subwindows& what, int n_threads,
                    Watch& watch, std::span<T> values);

// Adds maps of grid * grid cells with n_values each to the pixels of their squares, every pixel
// taking the cell that it lies in, and counts the squares that cover each pixel.
struct PixelSums {
  std::span<double> sums;    // height * width * n_values
  std::span<double> counts;  // height * width
  std::int64_t width;
};
void paste_subwindows(std::span<const Square> squares, std::span<const double> maps,
                      std::int64_t grid, std::int64_t n_values, Watch& watch, PixelSums pixels);

}  // namespace okforest
