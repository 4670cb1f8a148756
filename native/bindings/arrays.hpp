// NumPy arrays as views of the core, and vectors of the core as NumPy arrays.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <span>
#include <utility>
#include <vector>

#include "core/views.hpp"

namespace okforest {

namespace nb = nanobind;

// All arrays are read-only, and none is ever converted: the Python side does that once.
template <class T>
using Inputs = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;
template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T, int NDim = 1>
using Result = nb::ndarray<nb::numpy, T, nb::ndim<NDim>>;

template <class T>
InputView<T> input_view(const Inputs<T>& X) {
  return {X.data(), static_cast<std::int64_t>(X.shape(0)), static_cast<std::int64_t>(X.shape(1)),
          X.stride(0), X.stride(1)};
}

template <class T>
std::span<const T> view(const Vector<T>& array) {
  return {array.data(), array.size()};
}

// Hands the vector's memory to NumPy.
template <class T, int NDim = 1>
Result<T, NDim> to_numpy(std::vector<T>&& values, std::initializer_list<std::size_t> shape) {
  auto* kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return Result<T, NDim>(kept->data(), shape, owner);
}

template <class T>
Result<T> to_numpy(std::vector<T>&& values) {
  const std::size_t n = values.size();
  return to_numpy<T, 1>(std::move(values), {n});
}

}  // namespace okforest
