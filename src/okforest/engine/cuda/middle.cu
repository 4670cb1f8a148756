// Nodes of 33 to 1,024 rows: one block of threads grows all below such a node, down to small nodes.

// The norms of all cuts, and the thread's share of the squared norm of the sum of all rows. A warp
// takes 64 columns; if there are fewer of them than warps, parts of the rows.
__device__ inline double find_norms(const Plan& plan, const int* rows, int n, const Middle& m) {
  double square = 0.0;
  for (i64 column = 0; column < plan.width; column += 64 * n_warps()) {
    const int n_columns =
        static_cast<int>(min(static_cast<i64>(64 * n_warps()), plan.width - column));
    const int n_groups = (n_columns + 63) / 64, n_parts = n_warps() / n_groups;
    const int per_part = (n + 8 * n_parts - 1) / (8 * n_parts) * 8;
    const int group = warp_of() % n_groups, part = warp_of() / n_groups;
    for (int pass = 0; pass < N_PASSES; ++pass) {
      if (part < n_parts) {
        const u32* const from = plan.weighted + column + 64 * group;
        const int* const own = rows + part * per_part;
        const u32* const words = m.words + pass * TILE + part * per_part;
        float* const out = m.sums + warp_of() * (SLOTS * SUM_STRIDE);
#pragma unroll 1
        for (int g = 0; g < 2; ++g) {
          if (64 * group + 32 * g >= n_columns) continue;
          float sums[4][4] = {};
          add_rows(from + 32 * g, plan.width, own, words, per_part, sums);
#pragma unroll
          for (int c = 0; c < 4; ++c) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
              const int slot = (lane_of() >> 2) + 8 * (i >> 1);
              out[slot * SUM_STRIDE + 32 * g + column_of(c, i)] = sums[c][i];
            }
          }
        }
      }
      __syncthreads();
      // The sum of a slot over the parts.
      const auto sum_at = [&](int slot, int c) {
        float sum = 0.0f;
        for (int q = 0; q < n_parts; ++q) {
          sum += m.sums[((q * n_groups + c / 64) * SLOTS + slot) * SUM_STRIDE + c % 64];
        }
        return sum;
      };
      if (pass == 0) {
        for (int c = threadIdx.x; c < n_columns; c += n_threads()) {
          const double sum = sum_at(0, c);
          m.mean[c] = static_cast<float>(sum / m.sides.slot_weight[0]);
          square += sum * sum;
        }
        __syncthreads();
      }
      const int step = ANY_MISSING ? 2 : 1;
      for (int slot = warp_of(); slot < SLOTS; slot += n_warps()) {
        const int k = (pass * SLOTS + slot - slot_of(plan, 0)) / step;
        if (pass * SLOTS + slot < slot_of(plan, 0) || k >= plan.max_features) continue;
        if (slot_of(plan, k) != pass * SLOTS + slot) continue;
        const bool add_missing = m.sides.missing[k] && m.sides.missing_left[k];
        const float left = static_cast<float>(m.sides.left_weight[k]);
        float norm = 0.0f;
        for (int c = lane_of(); c < n_columns; c += 32) {
          float sum = sum_at(slot, c);
          if (add_missing) sum += sum_at(slot + 1, c);
          const float d = sum - left * m.mean[c];
          norm += d * d;
        }
        for (int d = 16; d > 0; d /= 2) norm += __shfl_xor_sync(~0u, norm, d);
        if (lane_of() == 0) m.norm[k] += norm;
      }
      __syncthreads();
    }
  }
  return square;
}

// Keeps the rows on the left before those on the right, in their order. The words know the sides of
// cut number `cut`; those of any other split follow from the values.
__device__ inline void divide_rows(const Plan& plan, int* rows, int n, const Split& split, int cut,
                                   int n_left, const Middle& m) {
  __shared__ int before[MIDDLE_WARPS];
  const int slot = slot_of(plan, max(cut, 0));
  const u32* const words = m.words + slot / SLOTS * TILE;
  const u32 sides = (split.missing_left && ANY_MISSING ? 3u : 1u) << slot % SLOTS;
  const auto is_left = [&](int i) {
    if (cut >= 0) return (words[i] & sides) != 0;
    const Value x = static_cast<Value>(plan.X[m.moved[i] * plan.n_features + split.feature]);
    return is_missing(x) ? split.missing_left : x <= split.threshold;
  };
  for (int i = threadIdx.x; i < n; i += n_threads()) m.moved[i] = rows[i];
  int done = 0;  // rows on the left of earlier tiles
  for (int begin = 0; begin < n; begin += n_threads()) {
    const int i = begin + threadIdx.x;
    __syncthreads();
    const bool left = i < n && is_left(i);
    const u32 lefts = __ballot_sync(~0u, left);
    if (lane_of() == 0) before[warp_of()] = __popc(lefts);
    __syncthreads();
    int place = done;
    for (int w = 0; w < n_warps(); ++w) {
      if (w < warp_of()) place += before[w];
      done += before[w];
    }
    place += __popc(lefts & ((1u << lane_of()) - 1));
    if (i < n) rows[left ? place : n_left + i - place] = m.moved[i];
  }
  __syncthreads();
}

// Makes the gains of close cuts exact, some cuts at a time, and excludes all others.
__device__ inline void settle(const Plan& plan, const Item& node, int n, double weight,
                              double count, double noise, Middle m) {
  const int n_cuts = static_cast<int>(plan.max_features);
  double lower = -1.0;
#pragma unroll 1
  for (int k = 0; k < n_cuts; ++k) lower = fmax(lower, m.sides.gain[k] - m.sides.error[k]);
  const double least = least_equal(lower, noise);
  __syncthreads();
  int close[CLOSE], n_close = 0;
#pragma unroll 1
  for (int k = 0; k < n_cuts; ++k) {
    if (m.sides.gain[k] < 0.0 || m.sides.gain[k] + m.sides.error[k] < least) {
      if (threadIdx.x == 0) m.sides.gain[k] = -1.0, m.sides.error[k] = 0.0;
    } else {
#pragma unroll
      for (int q = 0; q < CLOSE; ++q) close[q] = q == n_close || n_close == 0 ? k : close[q];
      ++n_close;
    }
    if (n_close == 0 || (n_close < CLOSE && k < n_cuts - 1)) continue;
    u32 sides[CLOSE];
    const u32* words[CLOSE];
    double norm[CLOSE] = {};
#pragma unroll
    for (int q = 0; q < CLOSE; ++q) {
      const int slot = slot_of(plan, close[q]);
      words[q] = m.words + slot / SLOTS * TILE;
      sides[q] = (ANY_MISSING && m.sides.missing_left[close[q]] ? 3u : 1u) << slot % SLOTS;
    }
#pragma unroll 1
    for (i64 column = 2 * threadIdx.x; column < plan.width; column += 2 * n_threads()) {
      double sum[2] = {}, left[CLOSE][2] = {};
#pragma unroll 4
      for (int i = 0; i < n; ++i) {
        const int row = m.rows[i];
        const uint2 two =
            *reinterpret_cast<const uint2*>(plan.weighted + row * plan.width + column);
        double x[2] = {output_of(two.x), output_of(two.y)};
        const double times = BOOTSTRAP ? weight_at(plan, node.tree, row) : 1.0;
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          if (BOOTSTRAP) x[c] *= times;
          sum[c] += x[c];
#pragma unroll
          for (int q = 0; q < CLOSE; ++q) left[q][c] += words[q][i] & sides[q] ? x[c] : 0.0;
        }
      }
#pragma unroll
      for (int q = 0; q < CLOSE; ++q) {
        for (int c = 0; c < 2; ++c) {
          const double d = left[q][c] - m.sides.left_weight[close[q]] * (sum[c] / weight);
          norm[q] += d * d;
        }
      }
    }
#pragma unroll
    for (int q = 0; q < CLOSE; ++q) {
      const double total = sum_of_block(norm[q], m.scratch);
      if (threadIdx.x > 0 || q >= n_close) continue;
      m.sides.gain[close[q]] = gain_of(plan, total, weight, count, m.sides.left_weight[close[q]],
                                       m.sides.left_count[close[q]]);
      m.sides.error[close[q]] = 0.0;
    }
    n_close = 0;
  }
  __syncthreads();
}

KERNEL(MIDDLE_THREADS, MIDDLE_BLOCKS) grow_middle(RECORD(Plan) plan, int n_items) {
  SHARED memory[];
  __shared__ Item node;
  __shared__ int n_waiting, chosen;
  __shared__ Split split;
  Pool pool{memory};
  const Middle m = take_middle(plan, pool);
  int* const order = plan.order + static_cast<i64>(blockIdx.x) * plan.n_features;
  for (int item = blockIdx.x; item < n_items; item += gridDim.x) {
    const Item top = plan.middle[item];
    __syncthreads();
    if (threadIdx.x == 0) {
      m.stack[0] = top;
      n_waiting = 1;
    }
    __syncthreads();
    while (n_waiting > 0) {
      if (threadIdx.x == 0) node = m.stack[n_waiting - 1];
      __syncthreads();
      if (threadIdx.x == 0) --n_waiting;
      const int n = node.end - node.begin;
      // As many parts as possible, of a multiple of eight rows each.
      const int n_padded =
          min(TILE, (n + 8 * MIDDLE_WARPS - 1) / (8 * MIDDLE_WARPS) * (8 * MIDDLE_WARPS));
      for (int i = threadIdx.x; i < n_padded; i += n_threads()) {
        m.rows[i] = plan.members[node.begin + (i < n ? i : 0)];
      }
      __syncthreads();
      Value values[CUTS];
      draw_cuts(plan, node, m.rows, n, m, order, values);
      double2 scale = find_sides(plan, node, m.rows, n, n_padded, m, values);
      const double weight = m.sides.slot_weight[0], count = m.sides.slot_count[0];
      double square = find_norms(plan, m.rows, n, m);
      sum_all_of_block(scale.x, scale.y, square, m.scratch);
      double variance = scale.x - square / weight;
      // Most digits are lost by cancellation: sum the squares around the mean instead.
      if (variance < 0.1 * scale.x) {
        variance = exact_norm(plan, node, m.rows, n, split, weight, 0.0, m.scratch);
      }
      const double noise = fmax(NOISE * variance, ROUNDING * sqrt(variance * scale.y));
      bool found = false;
      if (may_split(plan, node.depth, count, variance, scale.y)) {
        // Bounds the errors of sums of this many products in float32, relative to sum |phi_i|.
        const double unit = (2.0 * n / 8 + 24.0) * 1.1920928955078125e-07;
        const double spread = unit * unit * scale.x;
        for (int k = threadIdx.x; k < plan.max_features; k += n_threads()) {
          const double left = m.sides.left_weight[k];
          const double gain = m.sides.cut[k].possible ? gain_of(plan, m.norm[k], weight, count,
                                                                left, m.sides.left_count[k])
                                                      : -1.0;
          const double ratio = weight / (weight - left);
          m.sides.gain[k] = gain;
          m.sides.error[k] = gain < 0.0 ? 0.0 : 2.0 * sqrt(gain * spread * ratio) + spread * ratio;
        }
        __syncthreads();
        if (warp_of() == 0) {
          const int cut = choose(plan, node.seed, m.sides, noise, order);
          if (lane_of() == 0) chosen = cut;
        }
        __syncthreads();
        if (chosen == INEXACT) {
          settle(plan, node, n, weight, count, noise, m);
          if (warp_of() == 0) {
            const int cut = choose(plan, node.seed, m.sides, noise, order);
            if (lane_of() == 0) chosen = cut;
          }
          __syncthreads();
        }
        if (chosen >= 0) {
          found = plan.min_gain <= 0.0 || is_enough(plan, m.sides.gain[chosen], noise);
          if (threadIdx.x == 0) {
            split = {m.sides.feature[chosen], m.sides.cut[chosen].threshold,
                     m.sides.missing_left[chosen] != 0, node.begin + m.sides.left_rows[chosen]};
          }
          __syncthreads();
        } else {
          Split more;
          found = draw_more(plan, node, m.rows, n, weight, count, noise, order, m.scratch, more);
          if (threadIdx.x == 0 && found) split = more;
          __syncthreads();
        }
      }
      if (!found) {
        if (threadIdx.x == 0) write_leaf(plan, node, weight, variance);
        __syncthreads();
        continue;
      }
      divide_rows(plan, m.rows, n, split, chosen, split.middle - node.begin, m);
      for (int i = threadIdx.x; i < n; i += n_threads()) plan.members[node.begin + i] = m.rows[i];
      if (threadIdx.x == 0) {
        write_split(plan, node, split, weight, variance);
        // The larger side waits below the smaller one: few nodes wait at any time.
        const bool right_first = split.middle - node.begin < node.end - split.middle;
        for (int s = 0; s < 2; ++s) {
          const Item child = child_of(node, split.middle, right_first == (s == 0));
          const int size = child.end - child.begin;
          if (size == 1) {
            write_leaf(plan, child, 0.0, 0.0);
          } else if (size <= SMALL) {
            plan.small[atomicAdd(&plan.n_items[3], 1)] = child;
          } else {
            m.stack[n_waiting++] = child;
          }
        }
      }
      __syncthreads();
    }
  }
}
