// The memory of a block, and what is counted for each slot of its sums.

#define MIDDLE_WARPS (MIDDLE_THREADS / 32)

// Memory of a block, from one array of bytes.
struct Pool {
  unsigned char* next;

  template <class T>
  __device__ T* take(i64 n) {
    T* const taken = reinterpret_cast<T*>(next);
    next += (n * static_cast<i64>(sizeof(T)) + 15) / 16 * 16;
    return taken;
  }
};

__device__ inline Sides take_sides(const Plan& plan, Pool& pool) {
  Sides sides;
  const i64 n = plan.max_features;
  sides.feature = pool.take<int>(n);
  sides.cut = pool.take<Cut>(n);
  sides.missing = pool.take<int>(n);
  sides.left_weight = pool.take<double>(n);
  sides.left_count = pool.take<double>(n);
  sides.gain = pool.take<double>(n);
  sides.error = pool.take<double>(n);
  sides.left_rows = pool.take<int>(n);
  sides.missing_left = pool.take<int>(n);
  sides.slot_weight = pool.take<double>(plan.n_slots);
  sides.slot_count = pool.take<double>(plan.n_slots);
  sides.slot_rows = pool.take<int>(plan.n_slots);
  return sides;
}

// Adds, for a warp's tile of 32 rows, the rows and weights of the slots of a pass.
__device__ inline void count_slots(const Plan& plan, u32 word, double weight, double count,
                                   int pass, int* slot_rows, double* slot_weight,
                                   double* slot_count) {
  const int n = min(SLOTS, static_cast<int>(plan.n_slots) - pass * SLOTS);
  int own = 0;
  double own_weight = 0.0, own_count = 0.0;
#pragma unroll 1
  for (int s = 0; s < n; ++s) {
    const bool in = word >> s & 1;
    const int rows = __popc(__ballot_sync(~0u, in));
    if (lane_of() == s) own = rows;
    if (PLAIN) continue;
    const double w = sum_of_warp(in ? weight : 0.0), c = sum_of_warp(in ? count : 0.0);
    if (lane_of() == s) own_weight = w, own_count = c;
  }
  if (lane_of() >= n) return;
  slot_rows[pass * SLOTS + lane_of()] += own;
  if (PLAIN) return;
  slot_weight[pass * SLOTS + lane_of()] += own_weight;
  slot_count[pass * SLOTS + lane_of()] += own_count;
}

// Sums three numbers at once.
__device__ inline void sum_all_of_block(double& x, double& y, double& z, double* scratch) {
  x = sum_of_warp(x);
  y = sum_of_warp(y);
  z = sum_of_warp(z);
  if (lane_of() == 0) {
    scratch[3 * warp_of()] = x;
    scratch[3 * warp_of() + 1] = y;
    scratch[3 * warp_of() + 2] = z;
  }
  __syncthreads();
  x = y = z = 0.0;
  for (int w = 0; w < n_warps(); ++w) {
    x += scratch[3 * w];
    y += scratch[3 * w + 1];
    z += scratch[3 * w + 2];
  }
  __syncthreads();
}
