// Nodes of 33 to 1,024 rows: one block of threads grows all below such a node, down to small nodes.

#define TILE (LARGE + 8 * MIDDLE_WARPS)
#define STACK 16

struct Middle {
  Sides sides;
  float* sums;     // of each warp: 16 slots x 32 columns
  float* mean;     // COLUMNS
  int* rows;       // of the subtree, then of a node, padded
  u32* words;      // n_passes x TILE
  int* moved;      // rows while they are divided
  int* part_rows;  // of each warp and slot
  double *part_weight, *part_count;
  Key *low, *high;
  double* norm;  // per cut
  double* scratch;
  Item* stack;
};

__device__ inline Middle take_middle(const Plan& plan, Pool& pool) {
  Middle m;
  m.sides = take_sides(plan, pool);
  m.sums = pool.take<float>(MIDDLE_WARPS * SLOTS * 64);
  m.mean = pool.take<float>(COLUMNS);
  m.rows = pool.take<int>(TILE);
  m.words = pool.take<u32>(plan.n_passes * TILE);
  m.moved = pool.take<int>(LARGE);
  m.part_rows = pool.take<int>(MIDDLE_WARPS * plan.n_passes * SLOTS);
  m.part_weight = pool.take<double>(plan.plain ? 1 : MIDDLE_WARPS * plan.n_passes * SLOTS);
  m.part_count = pool.take<double>(plan.plain ? 1 : MIDDLE_WARPS * plan.n_passes * SLOTS);
  m.low = pool.take<Key>(plan.max_features);
  m.high = pool.take<Key>(plan.max_features);
  m.norm = pool.take<double>(plan.max_features);
  m.scratch = pool.take<double>(3 * MIDDLE_WARPS);
  m.stack = pool.take<Item>(STACK);
  return m;
}

// Draws the features of a node and finds the ranges of their values, some cuts at a time. If all
// fit, a thread's values of the last tile of rows stay in x.
__device__ inline void draw_cuts(const Plan& plan, const Item& node, const int* rows, int n,
                                 const Middle& m, int* order, Value x[CUTS]) {
  const int n_cuts = static_cast<int>(plan.max_features), p = static_cast<int>(plan.n_features);
  if (!plan.natural && n_cuts <= 32) {
    if (warp_of() == 0) {
      const int feature = draw_by_warp(node.seed, n_cuts, p);
      if (lane_of() < n_cuts) m.sides.feature[lane_of()] = feature;
    }
  } else if (!plan.natural) {
    if (threadIdx.x == 0) {
      for (int k = 0; k < n_cuts; ++k) m.sides.feature[k] = draw(order, node.seed, k, p);
      put_back(order, node.seed, n_cuts, p);
    }
  }
  for (int k = threadIdx.x; k < n_cuts; k += n_threads()) {
    if (plan.natural) m.sides.feature[k] = k;
    m.low[k] = NO_LOW;
    m.high[k] = NO_HIGH;
    m.sides.missing[k] = 0;
  }
  __syncthreads();
  for (int first = 0; first < n_cuts; first += CUTS) {
    const int n_here = min(CUTS, n_cuts - first);
    for (int begin = 0; begin < n; begin += n_threads()) {
      const int i = min(begin + static_cast<int>(threadIdx.x), n - 1);  // the last row again
      load_values(plan, m.sides.feature + first, n_here, rows[i], x);
      Key low = NO_LOW, high = NO_HIGH;
      bool missing = false;
#pragma unroll
      for (int k = 0; k < CUTS; ++k) {
        if (k >= n_here) continue;
        const bool present = !is_missing(x[k]);
        const Key key = key_of(x[k]);
        const Key least = least_of_warp(present ? key : NO_LOW);
        const Key most = most_of_warp(present ? key : NO_HIGH);
        const bool any = plan.any_missing && __any_sync(~0u, !present);
        if (lane_of() == k) low = least, high = most, missing = any;
      }
      if (lane_of() < n_here) {
        atomicMin(&m.low[first + lane_of()], low);
        atomicMax(&m.high[first + lane_of()], high);
        if (missing) m.sides.missing[first + lane_of()] = 1;
      }
    }
  }
  __syncthreads();
  for (int k = threadIdx.x; k < n_cuts; k += n_threads()) {
    m.sides.cut[k] =
        make_cut(node.seed, m.sides.feature[k], m.low[k], m.high[k], m.sides.missing[k] != 0);
  }
  __syncthreads();
}

// Fills the words of all rows and, from them, what is on the left of each cut. Returns the thread's
// share of the scale around the mean in x, and around zero in y. `values` are those that draw_cuts
// has left.
__device__ inline double2 find_sides(const Plan& plan, const Item& node, const int* rows, int n,
                                     int n_padded, const Middle& m, Value values[CUTS]) {
  const int n_parts = static_cast<int>(plan.n_passes) * SLOTS;
  for (int k = threadIdx.x; k < n_warps() * n_parts; k += n_threads()) {
    m.part_rows[k] = 0;
    if (!plan.plain) m.part_weight[k] = m.part_count[k] = 0.0;
  }
  __syncthreads();
  double2 scale = {0.0, 0.0};
  const bool few = plan.max_features <= CUTS;
  for (int begin = 0; begin < n_padded; begin += n_threads()) {
    const int i = begin + threadIdx.x;
    const int row = i < n ? rows[i] : -1;
    double weight = 0.0, count = 0.0;
    u32 factor = 0;
    if (row >= 0) {
      weight = weight_at(plan, node.tree, row);
      count = plan.plain ? 1.0 : count_at(plan, node.tree, row);
      scale.x += weight * plan.squares[2 * static_cast<i64>(row)];
      scale.y += weight * plan.squares[2 * static_cast<i64>(row) + 1];
      factor = factor_at(plan, node.tree, row);
      if (few && n > n_threads()) {
        load_values(plan, m.sides.feature, static_cast<int>(plan.max_features), row, values);
      }
    }
    for (int pass = 0; pass < plan.n_passes; ++pass) {
      u32 word = 0;
      if (row >= 0) {
        word = few ? sides_of_values(plan, m.sides, values, factor, pass)
                   : sides_of(plan, m.sides, plan.X + row * plan.n_features, factor, pass);
      }
      if (i < n_padded) m.words[pass * TILE + i] = word;
      count_slots(plan, word, weight, count, pass, m.part_rows + warp_of() * n_parts,
                  m.part_weight + warp_of() * n_parts, m.part_count + warp_of() * n_parts);
    }
  }
  __syncthreads();
  for (int s = threadIdx.x; s < plan.n_slots; s += n_threads()) {
    int total = 0;
    double weight = 0.0, count = 0.0;
    for (int w = 0; w < n_warps(); ++w) {
      total += m.part_rows[w * n_parts + s];
      if (plan.plain) continue;
      weight += m.part_weight[w * n_parts + s];
      count += m.part_count[w * n_parts + s];
    }
    m.sides.slot_rows[s] = total;
    m.sides.slot_weight[s] = plan.plain ? total : weight;
    m.sides.slot_count[s] = plan.plain ? total : count;
  }
  __syncthreads();
  for (int k = threadIdx.x; k < plan.max_features; k += n_threads()) {
    find_left(plan, m.sides, k);
    m.norm[k] = 0.0;
  }
  __syncthreads();
  return scale;
}

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
    for (int pass = 0; pass < plan.n_passes; ++pass) {
      if (part < n_parts) {
        float sums[2][4][4] = {};
        const u32* const from = plan.weighted + column + 64 * group;
        const int* const own = rows + part * per_part;
        const u32* const words = m.words + pass * TILE + part * per_part;
        if (64 * group + 32 < n_columns) {
          add_rows<2>(from, plan.width, own, words, per_part, sums);
        } else {
          add_rows<1>(from, plan.width, own, words, per_part, sums);
        }
        float* const out = m.sums + warp_of() * (SLOTS * 64);
#pragma unroll
        for (int g = 0; g < 2; ++g) {
#pragma unroll
          for (int c = 0; c < 4; ++c) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
              out[((lane_of() >> 2) + 8 * (i >> 1)) * 64 + 32 * g + column_of(c, i)] =
                  sums[g][c][i];
            }
          }
        }
      }
      __syncthreads();
      // The sum of a slot over the parts.
      const auto sum_at = [&](int slot, int c) {
        float sum = 0.0f;
        for (int q = 0; q < n_parts; ++q) {
          sum += m.sums[((q * n_groups + c / 64) * SLOTS + slot) * 64 + c % 64];
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
      const int step = plan.any_missing ? 2 : 1;
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

// Keeps the rows on the left before those on the right, in their order.
__device__ inline void divide_rows(const Plan& plan, int* rows, int n, const Split& split,
                                   int n_left, const Middle& m) {
  __shared__ int before[MIDDLE_WARPS];
#if INPUT_BYTES == 8
  const Value rounded = split.threshold;
#else
  const Value rounded = __double2float_rd(split.threshold);
#endif
  for (int i = threadIdx.x; i < n; i += n_threads()) m.moved[i] = rows[i];
  int done = 0;  // rows on the left of earlier tiles
  for (int begin = 0; begin < n; begin += n_threads()) {
    const int i = begin + threadIdx.x;
    __syncthreads();
    bool left = false;
    if (i < n) {
      const Value x = static_cast<Value>(plan.X[m.moved[i] * plan.n_features + split.feature]);
      left = goes_left(x, rounded, split.missing_left);
    }
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

KERNEL(MIDDLE_THREADS, MIDDLE_BLOCKS) grow_middle(const Plan* given, int n_items) {
  SHARED memory[];
  __shared__ Item node;
  __shared__ int n_waiting, chosen;
  __shared__ Split split;
  const Plan& plan = *given;
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
          double lower = -1.0;
#pragma unroll 1
          for (int k = 0; k < plan.max_features; ++k) {
            lower = fmax(lower, m.sides.gain[k] - m.sides.error[k]);
          }
          const double least = least_equal(lower, noise);
#pragma unroll 1
          for (int k = 0; k < plan.max_features; ++k) {
            const double gain = m.sides.gain[k], error = m.sides.error[k];
            __syncthreads();
            if (gain < 0.0 || gain + error < least) {
              if (threadIdx.x == 0) m.sides.gain[k] = -1.0, m.sides.error[k] = 0.0;
              continue;
            }
            const double left = m.sides.left_weight[k];
            const Split tried{m.sides.feature[k], m.sides.cut[k].threshold,
                              m.sides.missing_left[k] != 0, 0};
            const double norm = exact_norm(plan, node, m.rows, n, tried, weight, left, m.scratch);
            if (threadIdx.x == 0) {
              m.sides.gain[k] = gain_of(plan, norm, weight, count, left, m.sides.left_count[k]);
              m.sides.error[k] = 0.0;
            }
          }
          __syncthreads();
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
      divide_rows(plan, m.rows, n, split, split.middle - node.begin, m);
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
