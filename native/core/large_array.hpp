// Arrays that are read at random positions, by whole cache lines.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace okforest {

// Aligned to cache lines, so that a SIMD load reads one of them. Large arrays use huge pages where
// the system offers them on request: with small ones, most random reads miss the TLB.
template <class T>
struct LargeAllocator {
  using value_type = T;

  LargeAllocator() = default;
  template <class U>
  LargeAllocator(const LargeAllocator<U>&) {}

  T* allocate(std::size_t n) {
    void* const memory = ::operator new(n * sizeof(T), alignment(n));
#ifdef MADV_HUGEPAGE
    if (n * sizeof(T) >= kHuge) madvise(memory, n * sizeof(T), MADV_HUGEPAGE);
#endif
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t n) { ::operator delete(memory, alignment(n)); }

  bool operator==(const LargeAllocator&) const { return true; }

 private:
  static constexpr std::size_t kLine = 64, kHuge = std::size_t{1} << 21;

  static std::align_val_t alignment(std::size_t n) {
    return std::align_val_t{n * sizeof(T) >= kHuge ? kHuge : kLine};
  }
};

template <class T>
using LargeArray = std::vector<T, LargeAllocator<T>>;

}  // namespace okforest
