#include "images/subwindows.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "core/parallel.hpp"
#include "core/random.hpp"

namespace okforest {

namespace {

constexpr std::int64_t kBlock = 256;  // subwindows in a task

// Floats hold bytes, and their means with weights of a few bits, without rounding: the subwindows
// of byte images are the same on every machine if the side of the result is a power of two.
float between(float a, float b, float weight) { return a + weight * (b - a); }

template <class T>
T rounded(float value) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::int32_t>(value + 0.5f));
  } else {
    return value;
  }
}

// A position along a side: a fraction of the way from one pixel's centre to the next one's.
struct Position {
  std::int64_t first;
  float fraction;
};

Position position(float x, std::int64_t begin, std::int64_t side) {
  // Written so that NaN, the cosine of an infinite angle, is within the square, too.
  x = x > 0.0f ? std::min(x, static_cast<float>(side - 1)) : 0.0f;
  // The last pixel is all the way from the one before it, so that there always is a next one.
  const auto first = std::min(static_cast<std::int64_t>(x), std::max<std::int64_t>(side - 2, 0));
  return {begin + first, x - static_cast<float>(first)};
}

// Cuts subwindows one after the other.
template <class T>
class Cutter {
 public:
  Cutter(std::int64_t n_channels, std::int64_t size)
      : n_channels_(n_channels),
        size_(size),
        first_(static_cast<std::size_t>(size * n_channels)),
        fraction_(first_.size()),
        pairs_(first_.size()),
        above_(first_.size()),
        below_(first_.size()) {}

  void cut(const ImageView<T>& image, const Square& square, bool mirrored, T* values) {
    for (std::int64_t j = 0; j < size_; ++j) {
      const Position x = along(mirrored ? size_ - 1 - j : j, square.col, square.side);
      for (std::int64_t c = 0; c < n_channels_; ++c) {
        first_[j * n_channels_ + c] = static_cast<std::int32_t>(x.first * n_channels_ + c);
        fraction_[j * n_channels_ + c] = x.fraction;
      }
    }
    const Steps steps = steps_in(image, square);
    for (std::int64_t i = 0; i < size_; ++i, values += first_.size()) {
      const Position y = along(i, square.row, square.side);
      const T* row = image.data + y.first * image.width * n_channels_;
      interpolate_across(row, steps.across, above_.data());
      interpolate_across(row + steps.down, steps.across, below_.data());
      interpolate_down(y.fraction, values);
    }
  }

  void cut_turned(const ImageView<T>& image, const Square& square, float angle, bool mirrored,
                  T* values) const {
    const float cosine = std::cos(angle), sine = std::sin(angle);
    const float step = static_cast<float>(square.side) /
                       ((std::abs(cosine) + std::abs(sine)) * static_cast<float>(size_));
    const float centre = 0.5f * static_cast<float>(square.side);
    const float middle = 0.5f * static_cast<float>(size_);
    const Steps steps = steps_in(image, square);
    for (std::int64_t i = 0; i < size_; ++i) {
      const float v = step * (static_cast<float>(i) + 0.5f - middle);
      for (std::int64_t j = 0; j < size_; ++j) {
        const float u = step * (static_cast<float>(mirrored ? size_ - 1 - j : j) + 0.5f - middle);
        const Position x = position(centre + u * cosine - v * sine - 0.5f, square.col, square.side);
        const Position y = position(centre + u * sine + v * cosine - 0.5f, square.row, square.side);
        const T* above = image.data + (y.first * image.width + x.first) * n_channels_;
        const T* below = above + steps.down;
        for (std::int64_t c = 0; c < n_channels_; ++c, ++above, ++below) {
          const float top = between(above[0], above[steps.across], x.fraction);
          const float bottom = between(below[0], below[steps.across], x.fraction);
          *values++ = rounded<T>(between(top, bottom, y.fraction));
        }
      }
    }
  }

 private:
  // From a pixel to the next one across and down; a square of a single pixel has no next one.
  struct Steps {
    std::int64_t across;
    std::int64_t down;
  };
  Steps steps_in(const ImageView<T>& image, const Square& square) const {
    return square.side == 1 ? Steps{0, 0} : Steps{n_channels_, image.width * n_channels_};
  }

  // Interpolates within a row of the image. Pixels are collected first, so that the arithmetic is
  // on consecutive values, several at a time.
  void interpolate_across(const T* row, std::int64_t step, float* __restrict result) {
    const auto n = static_cast<std::int64_t>(first_.size());
    const std::int32_t* first = first_.data();
    const float* fraction = fraction_.data();
    Pair* __restrict pairs = pairs_.data();
    if (step == 1) {  // two bytes next to each other are one load
      for (std::int64_t k = 0; k < n; ++k) pairs[k] = Pair(row + first[k], 1);
    } else {
      for (std::int64_t k = 0; k < n; ++k) pairs[k] = Pair(row + first[k], step);
    }
    for (std::int64_t k = 0; k < n; ++k) {
      result[k] = between(pairs[k].first(), pairs[k].second(), fraction[k]);
    }
  }

  // Interpolates between the two rows.
  void interpolate_down(float fraction, T* __restrict values) const {
    const auto n = static_cast<std::int64_t>(first_.size());
    const float *above = above_.data(), *below = below_.data();
    for (std::int64_t k = 0; k < n; ++k) {
      values[k] = rounded<T>(between(above[k], below[k], fraction));
    }
  }

  struct Bytes {
    Bytes() = default;
    Bytes(const std::uint8_t* p, std::int64_t step) : both(p[0] | (p[step] << 8)) {}
    float first() const { return static_cast<float>(both & 255); }
    float second() const { return static_cast<float>(both >> 8); }
    std::int32_t both;
  };
  struct Floats {
    Floats() = default;
    Floats(const float* p, std::int64_t step) : a(p[0]), b(p[step]) {}
    float first() const { return a; }
    float second() const { return b; }
    float a, b;
  };
  using Pair = std::conditional_t<std::is_integral_v<T>, Bytes, Floats>;

  // Where pixel i of the resized side lies.
  Position along(std::int64_t i, std::int64_t begin, std::int64_t side) const {
    const auto numerator = static_cast<float>((2 * i + 1) * side - size_);
    return position(numerator / static_cast<float>(2 * size_), begin, side);
  }

  const std::int64_t n_channels_;
  const std::int64_t size_;
  std::vector<std::int32_t> first_;  // for each value of a row, where it lies in the image's row
  std::vector<float> fraction_;
  std::vector<Pair> pairs_;
  std::vector<float> above_;
  std::vector<float> below_;
};

}  // namespace

void draw_squares(std::span<const std::uint64_t> seeds, std::span<const Places> places,
                  std::int64_t n_each, std::span<Square> squares) {
  const auto below = [](double u, std::int64_t n) {
    return static_cast<std::int32_t>(u * static_cast<double>(n));
  };
  Square* square = squares.data();
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    const Places& own = places[i];
    Rng rng(seeds[i]);
    for (std::int64_t k = 0; k < n_each; ++k, ++square) {
      const double side = rng.uniform(), row = rng.uniform(), col = rng.uniform();
      square->side = static_cast<std::int32_t>(own.least) + below(side, own.n_sides);
      square->row = below(row, own.n_rows - square->side);
      square->col = below(col, own.n_cols - square->side);
    }
  }
}

template <class T>
void cut_subwindows(std::span<const ImageView<T>> images, const Subwindows& what, int n_threads,
                    Watch& watch, std::span<T> values) {
  const auto n = static_cast<std::int64_t>(what.squares.size());
  const std::int64_t n_values = what.size * what.size * what.n_channels;
  const auto cut = [&](std::int64_t begin, std::int64_t end, Pace& pace) {
    Cutter<T> cutter(what.n_channels, what.size);
    for (std::int64_t k = begin; k < end; ++k) {
      const ImageView<T>& image = images[what.image[k]];
      const bool mirrored = !what.mirrored.empty() && what.mirrored[k];
      T* own = values.data() + k * n_values;
      if (what.angles.empty()) {
        cutter.cut(image, what.squares[k], mirrored, own);
      } else {
        cutter.cut_turned(image, what.squares[k], what.angles[k], mirrored, own);
      }
      pace.advance(n_values);
    }
  };
  parallel_blocks(n, kBlock, n_threads, watch, cut);
}

template void cut_subwindows(std::span<const ImageView<std::uint8_t>>, const Subwindows&, int,
                             Watch&, std::span<std::uint8_t>);
template void cut_subwindows(std::span<const ImageView<float>>, const Subwindows&, int, Watch&,
                             std::span<float>);

void paste_subwindows(std::span<const Square> squares, std::span<const double> maps,
                      std::int64_t grid, std::int64_t n_values, Watch& watch, PixelSums pixels) {
  Pace pace(watch);
  const double* map = maps.data();
  for (const Square& square : squares) {
    for (std::int64_t i = 0; i < square.side; ++i) {
      const double* cells = map + (i * grid / square.side) * grid * n_values;
      const std::int64_t begin = (square.row + i) * pixels.width + square.col;
      for (std::int64_t j = 0; j < square.side; ++j) {
        const double* cell = cells + (j * grid / square.side) * n_values;
        double* sums = pixels.sums.data() + (begin + j) * n_values;
        for (std::int64_t v = 0; v < n_values; ++v) sums[v] += cell[v];
        pixels.counts[begin + j] += 1.0;
      }
    }
    map += grid * grid * n_values;
    pace.advance(static_cast<std::int64_t>(square.side) * square.side);
  }
}

}  // namespace okforest
