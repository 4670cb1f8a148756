// Arrays that begin at a cache line.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace okforest {

// A SIMD load of an aligned row reads one cache line, not parts of two.
template <class T>
struct AlignedAllocator {
  using value_type = T;

  AlignedAllocator() = default;
  template <class U>
  AlignedAllocator(const AlignedAllocator<U>&) {}

  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kCacheLine)); }
  void deallocate(T* memory, std::size_t) { ::operator delete(memory, kCacheLine); }

  bool operator==(const AlignedAllocator&) const { return true; }

 private:
  static constexpr std::align_val_t kCacheLine{64};
};

template <class T>
using AlignedArray = std::vector<T, AlignedAllocator<T>>;

}  // namespace okforest
