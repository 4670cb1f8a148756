// Arrays that begin at a cache line, or at a huge page if they are large.
#pragma once

#ifdef __linux__
#include <sys/mman.h>
#endif

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

  T* allocate(std::size_t n) {
    const std::size_t n_bytes = n * sizeof(T);
    void* const memory = ::operator new(n_bytes, alignment(n));
#ifdef __linux__
    // Fewer page faults and TLB misses. It may be refused, which does no harm.
    if (n_bytes >= kHugePage) madvise(memory, n_bytes, MADV_HUGEPAGE);
#endif
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t n) { ::operator delete(memory, alignment(n)); }

  bool operator==(const AlignedAllocator&) const { return true; }

 private:
  static constexpr std::size_t kHugePage = 1 << 21;

  static std::align_val_t alignment(std::size_t n) {
    return std::align_val_t{n * sizeof(T) < kHugePage ? 64 : kHugePage};
  }
};

template <class T>
using AlignedArray = std::vector<T, AlignedAllocator<T>>;

}  // namespace okforest
