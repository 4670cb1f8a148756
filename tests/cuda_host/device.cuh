// Emulates the device on the host: the threads of a block are fibers that take turns, and switch at
// barriers. It is slow, and checks that all threads of a warp or block reach the same barriers.
// With BACKWARDS, threads and blocks take turns from the last to the first: a missing barrier then
// gives different results.
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#define __device__
#define __noinline__ inline
#define __shared__ static
#define __launch_bounds__(...)
#define SHARED extern unsigned char
#define KERNEL(threads, blocks) static void
#define RECORD(type) const type&

using std::fmax;
using std::frexp;
using std::ldexp;
using std::max;
using std::min;
using std::rint;
using std::sqrt;

struct Dim {
  unsigned x = 0, y = 0;
};
struct uint2 {
  unsigned x, y;
};
struct uint4 {
  unsigned x, y, z, w;
};
struct double2 {
  double x, y;
};

inline Dim threadIdx, blockIdx, blockDim, gridDim;
alignas(16) inline unsigned char memory[1 << 20];

namespace host {

#if defined(__x86_64__)
// Saves the registers that a function must keep, and continues another fiber.
extern "C" void switch_stacks(void** from, void* to);
asm(R"(
.text
.globl switch_stacks
switch_stacks:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");
#endif

constexpr std::size_t kStack = 1 << 16;

#ifdef BACKWARDS
constexpr bool kBackwards = true;
#else
constexpr bool kBackwards = false;
#endif

struct Barrier {
  unsigned generation = 0;
  int n_waiting = 0, n_alive = 0;
};

struct Fiber {
#if defined(__x86_64__)
  void* stack_pointer = nullptr;
#else
  ucontext_t context;
#endif
  std::unique_ptr<unsigned char[]> stack{new unsigned char[kStack]};
  bool done = true;
  unsigned n_exchanges = 0;
};

struct Warp {
  Barrier barrier;
  alignas(16) unsigned char exchanged[2][32][64];
};

inline std::vector<Fiber> fibers;
inline std::vector<Warp> warps;
inline Barrier block;
inline int n_threads, current;
inline Fiber scheduler;
inline std::function<void()> body;

inline void leave_to(Fiber& from, Fiber& to) {
#if defined(__x86_64__)
  switch_stacks(&from.stack_pointer, to.stack_pointer);
#else
  swapcontext(&from.context, &to.context);
#endif
}

inline void go_to(int next) {
  Fiber& from = fibers[current];
  current = next;
  threadIdx.x = static_cast<unsigned>(next);
  leave_to(from, fibers[next]);
}

inline void release(Barrier& barrier) {
  if (barrier.n_waiting < barrier.n_alive || barrier.n_alive == 0) return;
  barrier.n_waiting = 0;
  ++barrier.generation;
}

// Waits until all threads first, ..., first + n - 1 that have not returned are here.
inline void wait(Barrier& barrier, int first, int n) {
  const int own = current;
  const unsigned generation = barrier.generation;
  ++barrier.n_waiting;
  release(barrier);
  long n_turns = 0;
  while (barrier.generation == generation) {
    int next = own;
    do {
      next = first + (next - first + (kBackwards ? n - 1 : 1)) % n;
    } while (fibers[next].done);
    if (++n_turns > 100000) {
      std::fprintf(stderr, "thread %d waits at a barrier that others do not reach\n", own);
      std::abort();
    }
    if (next != own) go_to(next);
  }
}

inline void run_thread() {
  body();
  Fiber& own = fibers[current];
  own.done = true;
  Warp& warp = warps[current / 32];
  --warp.barrier.n_alive;
  --block.n_alive;
  release(warp.barrier);
  release(block);
  for (int k = 1; k < n_threads; ++k) {
    const int next = (current + (kBackwards ? n_threads - k : k)) % n_threads;
    if (!fibers[next].done) go_to(next);
  }
  leave_to(own, scheduler);
  std::abort();
}

inline void start(Fiber& fiber) {
  fiber.done = false;
  fiber.n_exchanges = 0;
#if defined(__x86_64__)
  auto top = reinterpret_cast<std::uintptr_t>(fiber.stack.get() + kStack) & ~std::uintptr_t{15};
  void** sp = reinterpret_cast<void**>(top) - 1;
  *sp = nullptr;                                 // a return address that is never used
  *--sp = reinterpret_cast<void*>(&run_thread);  // where the first switch returns to
  for (int k = 0; k < 6; ++k) *--sp = nullptr;
  fiber.stack_pointer = sp;
#else
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = kStack;
  makecontext(&fiber.context, run_thread, 0);
#endif
}

// Subnormal numbers are zero, as in float32 on the device.
struct FlushSubnormals {
#if defined(__x86_64__)
  const unsigned before = _mm_getcsr();
  FlushSubnormals() { _mm_setcsr(before | 0x8040); }
  ~FlushSubnormals() { _mm_setcsr(before); }
#endif
};

inline void launch(Dim grid, int threads, std::function<void()> kernel) {
  const FlushSubnormals flush;
  body = std::move(kernel);
  n_threads = threads;
  gridDim = grid;
  blockDim.x = static_cast<unsigned>(threads);
  if (static_cast<int>(fibers.size()) < threads) fibers.resize(threads);
  warps.resize((threads + 31) / 32);
  for (unsigned y = 0; y < grid.y; ++y) {
    for (unsigned x = 0; x < grid.x; ++x) {
      blockIdx = kBackwards ? Dim{grid.x - 1 - x, grid.y - 1 - y} : Dim{x, y};
      block = {0, 0, threads};
      for (std::size_t w = 0; w < warps.size(); ++w) {
        warps[w].barrier = {0, 0, std::min(32, threads - 32 * static_cast<int>(w))};
      }
      for (int k = 0; k < threads; ++k) start(fibers[k]);
      current = kBackwards ? threads - 1 : 0;
      threadIdx.x = static_cast<unsigned>(current);
      leave_to(scheduler, fibers[current]);
    }
  }
}

// Calls f(values of all lanes) in every lane.
template <class T, class F>
auto exchange(const T& value, F&& f) {
  static_assert(sizeof(T) <= 64);
  Warp& warp = warps[current / 32];
  const unsigned buffer = fibers[current].n_exchanges++ % 2;
  std::memcpy(warp.exchanged[buffer][current % 32], &value, sizeof(T));
  wait(warp.barrier, current / 32 * 32, 32);
  const auto of = [&](int lane) {
    T other;
    std::memcpy(&other, warp.exchanged[buffer][lane], sizeof(T));
    return other;
  };
  return f(of);
}

}  // namespace host

inline void __syncthreads() { host::wait(host::block, 0, host::n_threads); }
inline void __syncwarp() {
  host::wait(host::warps[host::current / 32].barrier, host::current / 32 * 32, 32);
}

template <class T>
T __shfl_sync(unsigned, T x, int lane) {
  return host::exchange(x, [&](auto of) { return of(lane); });
}
template <class T>
T __shfl_xor_sync(unsigned, T x, int d) {
  return host::exchange(x, [&](auto of) { return of((host::current % 32) ^ d); });
}
inline unsigned __ballot_sync(unsigned, bool x) {
  return host::exchange(x, [](auto of) {
    unsigned bits = 0;
    for (int k = 0; k < 32; ++k) bits |= static_cast<unsigned>(of(k)) << k;
    return bits;
  });
}
inline unsigned __match_any_sync(unsigned, int x) {
  return host::exchange(x, [&](auto of) {
    unsigned bits = 0;
    for (int k = 0; k < 32; ++k) bits |= static_cast<unsigned>(of(k) == x) << k;
    return bits;
  });
}
inline bool __any_sync(unsigned, bool x) { return __ballot_sync(~0u, x) != 0; }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(unsigned x) { return x ? __builtin_clz(x) : 32; }
inline int __ffs(unsigned x) { return __builtin_ffs(static_cast<int>(x)); }

template <class To, class From>
To bits_as(From x) {
  To y;
  static_assert(sizeof(To) == sizeof(From));
  std::memcpy(&y, &x, sizeof(y));
  return y;
}
inline unsigned __float_as_uint(float x) { return bits_as<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return bits_as<float>(x); }
inline long long __double_as_longlong(double x) { return bits_as<long long>(x); }
inline double __longlong_as_double(long long x) { return bits_as<double>(x); }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline float __double2float_rd(double x) {
  const float near = static_cast<float>(x);
  return near > x ? std::nextafter(near, -INFINITY) : near;
}

template <class T>
T atomicAdd(T* at, T x) {
  const T old = *at;
  *at += x;
  return old;
}
template <class T>
void atomicMin(T* at, T x) {
  *at = std::min(*at, x);
}
template <class T>
void atomicMax(T* at, T x) {
  *at = std::max(*at, x);
}

inline float float_of(unsigned half_bits) {
  return static_cast<float>(bits_as<_Float16>(static_cast<unsigned short>(half_bits)));
}
inline unsigned half_of(float x) { return bits_as<unsigned short>(static_cast<_Float16>(x)); }

struct Fragments {
  unsigned a[4], b[2];
};
inline void multiply_halves(float sums[4], const unsigned a[4], unsigned b0, unsigned b1) {
  const Fragments own{{a[0], a[1], a[2], a[3]}, {b0, b1}};
  host::exchange(own, [&](auto of) {
    const int lane = host::current % 32;
    const auto half = [](unsigned pair, int k) {
      return float_of(k % 2 ? pair >> 16 : pair & 0xffff);
    };
    for (int i = 0; i < 4; ++i) {
      const int row = lane / 4 + 8 * (i / 2), col = 2 * (lane % 4) + i % 2;
      double sum = 0.0;
      for (int k = 0; k < 16; ++k) {
        const int of_k = k % 8 / 2;  // the lane, of four, that holds it
        const Fragments x = of(row % 8 * 4 + of_k), y = of(col * 4 + of_k);
        sum += static_cast<double>(half(x.a[row / 8 + k / 8 * 2], k)) * half(y.b[k / 8], k);
      }
      sums[i] = static_cast<float>(sums[i] + sum);
    }
    return 0;
  });
}
inline void multiply_doubles(double sums[2], double a, double b) {
  struct Pair {
    double a, b;
  };
  host::exchange(Pair{a, b}, [&](auto of) {
    const int lane = host::current % 32;
    for (int i = 0; i < 2; ++i) {
      for (int k = 0; k < 4; ++k) {
        sums[i] += of(lane / 4 * 4 + k).a * of((2 * (lane % 4) + i) * 4 + k).b;
      }
    }
    return 0;
  });
}

inline unsigned least_of_warp(unsigned x) {
  for (int d = 16; d > 0; d /= 2) x = std::min(x, __shfl_xor_sync(~0u, x, d));
  return x;
}
inline unsigned most_of_warp(unsigned x) { return ~least_of_warp(~x); }
