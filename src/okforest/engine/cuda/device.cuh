// Instructions of the device that C++ has no words for. Tests replace this file by one that
// emulates them on the host.

#define SHARED extern __shared__ __align__(16) unsigned char
#define KERNEL(threads, blocks) extern "C" __global__ void __launch_bounds__(threads, blocks)

// A record that is passed by value: its fields are constants of the launch.
#define RECORD(type) const __grid_constant__ type

__device__ inline float float_of(unsigned half_bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(static_cast<unsigned short>(half_bits)));
  return x;
}

__device__ inline unsigned half_of(float x) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}

// sums += A B, with A of 16 x 16 and B of 16 x 8 in float16, and sums in float32.
__device__ inline void multiply_halves(float sums[4], const unsigned a[4], unsigned b0,
                                       unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// sums += A B, with A of 8 x 4 and B of 4 x 8 in float64.
__device__ inline void multiply_doubles(double sums[2], double a, double b) {
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
               : "+d"(sums[0]), "+d"(sums[1])
               : "d"(a), "d"(b));
}

__device__ inline unsigned least_of_warp(unsigned x) { return __reduce_min_sync(~0u, x); }
__device__ inline unsigned most_of_warp(unsigned x) { return __reduce_max_sync(~0u, x); }
