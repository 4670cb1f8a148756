// Conversion of NumPy arrays to views of the core, and of its vectors to NumPy arrays.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "core/inputs.hpp"
#include "core/views.hpp"

namespace okforest {

namespace nb = nanobind;

// All arrays are read-only, except those modified in place. None is converted here: the Python side
// does that once.
template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T, int NDim = 1>
using Mutable = nb::ndarray<T, nb::ndim<NDim>, nb::c_contig, nb::device::cpu>;
template <class T, int NDim = 1>
using Result = nb::ndarray<nb::numpy, T, nb::ndim<NDim>>;

// Inputs: an array of any layout, of bytes or floats, or the data, indices and indptr of a
// compressed sparse matrix.
template <class T>
using Dense = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;
template <class T>
using Sparse = std::tuple<Vector<T>, Vector<std::int32_t>, Vector<std::int64_t>>;
using AnyInputs =
    std::variant<Dense<std::uint8_t>, Dense<float>, Dense<double>, Sparse<float>, Sparse<double>>;

// Where the values of an array are, after checking that the core may read them there.
template <class Array>
auto* data_of(const Array& array) {
  auto* const data = array.data();
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  if (array.size() > 0 && address % alignof(typename Array::Scalar) != 0) {
    throw std::invalid_argument("an array is not aligned; pass np.require(array, None, 'A')");
  }
  return data;
}

template <class T>
std::span<const T> view(const Vector<T>& array) {
  return {data_of(array), array.size()};
}

// A matrix that may be modified if the array may be.
template <class T>
MatrixOf<T> view(const nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>& array) {
  return {data_of(array), static_cast<std::int64_t>(array.shape(0)),
          static_cast<std::int64_t>(array.shape(1))};
}

// Whether parts that begin at these offsets are n entries, one part after the other.
inline bool are_offsets(std::span<const std::int64_t> offsets, std::size_t n) {
  return !offsets.empty() && offsets.front() == 0 && std::ranges::is_sorted(offsets) &&
         offsets.back() == static_cast<std::int64_t>(n);
}

inline bool are_indices(std::span<const std::int32_t> indices, std::int64_t n) {
  return std::ranges::all_of(indices, [&](std::int32_t i) { return i >= 0 && i < n; });
}

// The inputs as the core reads them. Sparse ones are compressed columns of n_across rows, or
// compressed rows of n_across columns, after checking that their indices ascend.
template <template <class> class Compressed, class T>
DenseInputs<T> inputs_of(const Dense<T>& X, std::int64_t) {
  return {data_of(X), static_cast<std::int64_t>(X.shape(0)), static_cast<std::int64_t>(X.shape(1)),
          X.stride(0), X.stride(1)};
}

template <template <class> class Compressed, class T>
Compressed<T> inputs_of(const Sparse<T>& X, std::int64_t n_across) {
  const auto data = view(std::get<0>(X));
  const auto indices = view(std::get<1>(X));
  const auto offsets = view(std::get<2>(X));
  bool sound = indices.size() == data.size() && are_offsets(offsets, data.size());
  for (std::size_t k = 0; sound && k + 1 < offsets.size(); ++k) {
    const auto own = indices.subspan(offsets[k], offsets[k + 1] - offsets[k]);
    sound = own.empty() || (own.front() >= 0 && own.back() < n_across &&
                            std::ranges::adjacent_find(own, std::greater_equal{}) == own.end());
  }
  if (!sound) throw std::invalid_argument("the sparse matrix X is not in canonical format");
  const auto n_along = static_cast<std::int64_t>(offsets.size()) - 1;
  constexpr bool by_columns = std::is_same_v<Compressed<T>, ColumnInputs<T>>;
  return {data, indices, offsets, by_columns ? n_across : n_along, by_columns ? n_along : n_across};
}

// Moves a vector to NumPy without copying it.
template <int NDim, class T, class Allocator>
Result<T, NDim> to_numpy(std::vector<T, Allocator>&& values,
                         std::initializer_list<std::size_t> shape) {
  using Kept = std::vector<T, Allocator>;
  auto* kept = new Kept(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<Kept*>(p); });
  return Result<T, NDim>(kept->data(), shape, owner);
}

template <class T, class Allocator>
Result<T> to_numpy(std::vector<T, Allocator>&& values) {
  const std::size_t n = values.size();
  return to_numpy<1>(std::move(values), {n});
}

}  // namespace okforest
