// What a warp knows about a small node: the inner products of its rows, and what follows from them.

struct SmallNode {
  u32 rows;
  int begin, depth, parent;
  u64 seed;
};

#define STRIDE 33
#define SMALL_STACK 8

// Memory of a warp.
struct Small {
  double* gram;    // 32 x 33, around the first row
  double* weight;  // per row
  double* count;
  double* reach;  // <phi_i, sum over the node>
  double* gain;   // per cut
  double* left_weight;
  u32* left;  // per cut: rows on its left
  int* feature;
  double* threshold;
  int* missing_left;
  Value* values;  // of up to 16 cuts, row by row
  int* listed;    // rows of the node
  int* place;     // their bits
  SmallNode* stack;
};

__device__ inline Small take_small(const Plan& plan, Pool& pool) {
  Small s{};
  const i64 n = (plan.max_features + 31) / 32 * 32;
  for (int w = 0; w <= warp_of(); ++w) {
    s.gram = pool.take<double>(SMALL * STRIDE);
    s.weight = pool.take<double>(SMALL);
    s.count = pool.take<double>(SMALL);
    s.reach = pool.take<double>(SMALL);
    s.gain = pool.take<double>(n);
    s.left_weight = pool.take<double>(n);
    s.left = pool.take<u32>(n);
    s.feature = pool.take<int>(n);
    s.threshold = pool.take<double>(n);
    s.missing_left = pool.take<int>(n);
    s.values = pool.take<Value>(16 * SMALL);
    s.listed = pool.take<int>(SMALL);
    s.place = pool.take<int>(SMALL);
    s.stack = pool.take<SmallNode>(SMALL_STACK);
  }
  return s;
}

__device__ inline double weight_of(const Plan& plan, const double* weight, u32 rows) {
  if (plan.plain) return __popc(rows);
  double sum = 0.0;
#pragma unroll 1
  for (; rows != 0; rows &= rows - 1) sum += weight[__ffs(rows) - 1];
  return sum;
}

// The inner products of all rows around the first one, by products of tiles of eight rows. The
// order of the columns does not matter: a lane takes four neighbours.
__device__ inline void find_gram(const Plan& plan, int row, int n, double* gram) {
  const int n_tiles = (n + 7) / 8;
  const u32* source[4];
  for (int t = 0; t < 4; ++t) {
    const int i = 8 * t + (lane_of() >> 2);
    const int other = __shfl_sync(~0u, row, i < n ? i : 0);
    source[t] = plan.phi + other * plan.width + 4 * (lane_of() & 3);
  }
  const u32* const origin = plan.phi + __shfl_sync(~0u, row, 0) * plan.width + 4 * (lane_of() & 3);
  double sums[10][2] = {};
#pragma unroll 1
  for (i64 column = 0; column < plan.width; column += 16) {
    const uint4 from = *reinterpret_cast<const uint4*>(origin + column);
    uint4 x[4];
#pragma unroll
    for (int t = 0; t < 4; ++t) {
      if (t < n_tiles) x[t] = *reinterpret_cast<const uint4*>(source[t] + column);
    }
    const float zero[4] = {output_of(from.x), output_of(from.y), output_of(from.z),
                           output_of(from.w)};
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      double value[4];
#pragma unroll
      for (int t = 0; t < 4; ++t) {
        if (t >= n_tiles) continue;
        const u32 pair = c == 0 ? x[t].x : c == 1 ? x[t].y : c == 2 ? x[t].z : x[t].w;
        value[t] = static_cast<double>(output_of(pair) - zero[c]);
      }
#pragma unroll
      for (int a = 0, pair = 0; a < 4; ++a) {
#pragma unroll
        for (int b = 0; b <= a; ++b, ++pair) {
          if (a < n_tiles) multiply_doubles(sums[pair], value[a], value[b]);
        }
      }
    }
  }
#pragma unroll
  for (int a = 0, pair = 0; a < 4; ++a) {
#pragma unroll
    for (int b = 0; b <= a; ++b, ++pair) {
      if (a >= n_tiles) continue;
      const int i = 8 * a + (lane_of() >> 2), j = 8 * b + 2 * (lane_of() & 3);
      for (int c = 0; c < 2; ++c) {
        gram[i * STRIDE + j + c] = sums[pair][c];
        gram[(j + c) * STRIDE + i] = sums[pair][c];
      }
    }
  }
  __syncwarp();
}

// Computes a node's total variance, and the norm of its mean; fills `reach`.
__device__ inline double find_variance(const Plan& plan, const Small& s, u32 rows, double weight,
                                       double& mean_norm, double& scale) {
  if (__popc(rows) == 2) {
    const int i = __ffs(rows) - 1, j = 31 - __clz(rows);
    const double of_i = s.gram[i * STRIDE + i], of_j = s.gram[j * STRIDE + j];
    const double between = s.gram[i * STRIDE + j];
    scale = s.weight[i] * of_i + s.weight[j] * of_j;
    return s.weight[i] * s.weight[j] * fmax((of_i - between) + (of_j - between), 0.0) / weight;
  }
  const bool in = rows >> lane_of() & 1;
  const double own = in ? s.weight[lane_of()] : 0.0;
  const double* const line = s.gram + lane_of() * STRIDE;
  double reach = 0.0;
#pragma unroll 1
  for (u32 rest = rows; rest != 0; rest &= rest - 1) {
    const int j = __ffs(rest) - 1;
    reach += plan.plain ? line[j] : s.weight[j] * line[j];
  }
  s.reach[lane_of()] = reach;
  const double sum_norm = sum_of_warp(in ? own * reach : 0.0);
  scale = sum_of_warp(in ? own * line[lane_of()] : 0.0);
  mean_norm = sum_norm / (weight * weight);
  double variance = scale - sum_norm / weight;
  if (variance < 1e-3 * scale) {
    // Digits are lost by cancellation: sum the distances of all pairs. Those of equal rows are
    // zero.
    double sum = 0.0;
#pragma unroll 1
    for (u32 rest = rows; rest != 0; rest &= rest - 1) {
      const int j = __ffs(rest) - 1;
      const double distance = (line[lane_of()] - line[j]) + (s.gram[j * STRIDE + j] - line[j]);
      sum += s.weight[j] * fmax(distance, 0.0);
    }
    variance = 0.5 * sum_of_warp(in ? own * sum : 0.0) / weight;
  }
  __syncwarp();
  return fmax(variance, 0.0);
}

// || sum over some rows of w_i (phi_i - mean) ||^2: lanes c and c + 16 sum over every other row of
// the same set. All lanes must take part.
__device__ inline double norm_of(const Plan& plan, const Small& s, u32 side, double side_weight,
                                 double weight, double mean_norm) {
  double norm = 0.0, reach = 0.0;
  bool own = lane_of() < 16;
#pragma unroll 1
  for (u32 rest = side; rest != 0; rest &= rest - 1, own = !own) {
    if (!own) continue;
    const int i = __ffs(rest) - 1;
    const double* const line = s.gram + i * STRIDE;
    double before = 0.0;
#pragma unroll 1
    for (u32 other = side & ((1u << i) - 1); other != 0; other &= other - 1) {
      const int j = __ffs(other) - 1;
      before += plan.plain ? line[j] : s.weight[j] * line[j];
    }
    const double w = plan.plain ? 1.0 : s.weight[i];
    norm += w * (2.0 * before + w * line[i]);
    reach += w * s.reach[i];
  }
  norm += __shfl_xor_sync(~0u, norm, 16);
  reach += __shfl_xor_sync(~0u, reach, 16);
  return norm - 2.0 * side_weight * reach / weight + side_weight * side_weight * mean_norm;
}
