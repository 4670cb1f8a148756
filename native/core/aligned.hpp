// Arrays that start at a cache line, so that no SIMD vector of them crosses one.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace okforest {

template <class T>
struct CacheLineAllocator {
  using value_type = T;

  CacheLineAllocator() = default;
  template <class U>
  CacheLineAllocator(const CacheLineAllocator<U>&) {}

  T* allocate(std::size_t n) {
    return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t{64}));
  }
  void deallocate(T* p, std::size_t) { ::operator delete(p, std::align_val_t{64}); }

  template <class U>
  bool operator==(const CacheLineAllocator<U>&) const {
    return true;
  }
};

template <class T>
using Aligned = std::vector<T, CacheLineAllocator<T>>;

}  // namespace okforest
