// What a warp knows about a small node: the inner products of its rows, and what follows from them.

struct SmallNode {
  u32 rows;
  int begin, depth, parent;
  u64 seed;
};

#define SMALL_STACK 8

// Where the inner product of two rows is: the lower half of the matrix, row by row.
__device__ inline int entry(int i, int j) {
  return i >= j ? i * (i + 1) / 2 + j : j * (j + 1) / 2 + i;
}

// Memory of a warp.
struct Small {
  double* gram;    // half a matrix of 32 x 32, around the first row
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
  SmallNode* pairs;  // nodes of two rows
};

__device__ inline Small take_small(const Plan& plan, Pool& pool) {
  Small s{};
  const i64 n = (plan.max_features + 31) / 32 * 32;
  for (int w = 0; w <= warp_of(); ++w) {
    s.gram = pool.take<double>(SMALL * (SMALL + 1) / 2);
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
    s.pairs = pool.take<SmallNode>(SMALL / 2);
  }
  return s;
}

__device__ inline double weight_of(const Plan& plan, const double* weight, u32 rows) {
  if (PLAIN) return __popc(rows);
  double sum = 0.0;
#pragma unroll 1
  for (; rows != 0; rows &= rows - 1) sum += weight[__ffs(rows) - 1];
  return sum;
}

// The inner products of all rows around the first one, by products of tiles of eight rows, for two
// tiles by two at a time. The order of the columns does not matter: a lane takes four neighbours.
__device__ inline void find_gram(const Plan& plan, int row, int n, double* gram) {
  const int n_tiles = (n + 7) / 8, line = lane_of() >> 2, place = lane_of() & 3;
  const auto source = [&](int tile) {
    const int i = 8 * tile + line;
    return plan.phi + __shfl_sync(~0u, row, i < n ? i : 0) * plan.width + 4 * place;
  };
  const u32* const origin = plan.phi + __shfl_sync(~0u, row, 0) * plan.width + 4 * place;
#pragma unroll 1
  for (int pair = 0; pair < (n_tiles > 2 ? 3 : 1); ++pair) {
    const int a = pair > 0 ? 2 : 0, b = pair > 1 ? 2 : 0;
    const u32* const from[4] = {source(a), source(a + 1), source(b), source(b + 1)};
    double sums[4][2] = {};
#pragma unroll 2
    for (i64 column = 0; column < plan.width; column += 16) {
      const uint4 start = *reinterpret_cast<const uint4*>(origin + column);
      uint4 x[4];
#pragma unroll
      for (int t = 0; t < 4; ++t) {
        x[t] = t < 2 || a != b ? *reinterpret_cast<const uint4*>(from[t] + column) : x[t - 2];
      }
      const float zero[4] = {output_of(start.x), output_of(start.y), output_of(start.z),
                             output_of(start.w)};
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        double value[4];
#pragma unroll
        for (int t = 0; t < 4; ++t) {
          const u32 two = c == 0 ? x[t].x : c == 1 ? x[t].y : c == 2 ? x[t].z : x[t].w;
          value[t] = static_cast<double>(output_of(two) - zero[c]);
        }
        multiply_doubles(sums[0], value[0], value[2]);
        multiply_doubles(sums[1], value[1], value[2]);
        multiply_doubles(sums[2], value[1], value[3]);
        if (a != b) multiply_doubles(sums[3], value[0], value[3]);
      }
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int i = 8 * (k == 1 || k == 2 ? a + 1 : a) + line;
      const int j = 8 * (k > 1 ? b + 1 : b) + 2 * place;
      if (k == 3 && a == b) continue;
      for (int c = 0; c < 2; ++c) {
        if (j + c <= i) gram[entry(i, j + c)] = sums[k][c];
      }
    }
  }
  __syncwarp();
}

// The total variance of two rows.
__device__ inline double variance_of_pair(const Small& s, int i, int j, double weight,
                                          double& scale) {
  const double of_i = s.gram[entry(i, i)], of_j = s.gram[entry(j, j)];
  const double between = s.gram[entry(j, i)];
  scale = s.weight[i] * of_i + s.weight[j] * of_j;
  return s.weight[i] * s.weight[j] * fmax((of_i - between) + (of_j - between), 0.0) / weight;
}

// Computes a node's total variance, and the norm of its mean; fills `reach`.
__device__ inline double find_variance(const Plan& plan, const Small& s, u32 rows, double weight,
                                       double& mean_norm, double& scale) {
  if (__popc(rows) == 2) {
    return variance_of_pair(s, __ffs(rows) - 1, 31 - __clz(rows), weight, scale);
  }
  const bool in = rows >> lane_of() & 1;
  const double own = in ? s.weight[lane_of()] : 0.0;
  const double square = s.gram[entry(lane_of(), lane_of())];
  double reach = 0.0;
#pragma unroll 1
  for (u32 rest = rows; rest != 0; rest &= rest - 1) {
    const int j = __ffs(rest) - 1;
    const double product = s.gram[entry(lane_of(), j)];
    reach += PLAIN ? product : s.weight[j] * product;
  }
  s.reach[lane_of()] = reach;
  const double sum_norm = sum_of_warp(in ? own * reach : 0.0);
  scale = sum_of_warp(in ? own * square : 0.0);
  mean_norm = sum_norm / (weight * weight);
  double variance = scale - sum_norm / weight;
  if (variance < 1e-3 * scale) {
    // Digits are lost by cancellation: sum the distances of all pairs. Those of equal rows are
    // zero.
    double sum = 0.0;
#pragma unroll 1
    for (u32 rest = rows; rest != 0; rest &= rest - 1) {
      const int j = __ffs(rest) - 1;
      const double product = s.gram[entry(lane_of(), j)];
      const double distance = (square - product) + (s.gram[entry(j, j)] - product);
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
    const double* const line = s.gram + entry(i, 0);
    double before = 0.0;
#pragma unroll 1
    for (u32 other = side & ((1u << i) - 1); other != 0; other &= other - 1) {
      const int j = __ffs(other) - 1;
      before += PLAIN ? line[j] : s.weight[j] * line[j];
    }
    const double w = PLAIN ? 1.0 : s.weight[i];
    norm += w * (2.0 * before + w * line[i]);
    reach += w * s.reach[i];
  }
  norm += __shfl_xor_sync(~0u, norm, 16);
  reach += __shfl_xor_sync(~0u, reach, 16);
  return norm - 2.0 * side_weight * reach / weight + side_weight * side_weight * mean_norm;
}
