// Sums over the rows of chunks, by matrix products in float16 or, where that does not decide, in
// float64.

#define TILE_ROWS 256

// The sums of a chunk: blockIdx.y numbers the groups of columns, and the passes over them.
template <bool exact>
__device__ inline void sum_chunk(const Plan& plan, int n_items, int level, unsigned char* memory) {
  __shared__ int rows[TILE_ROWS];
  __shared__ u32 words[TILE_ROWS];
  Chunk chunk;
  if (!find_chunk(plan, n_items, level, chunk)) return;
  if (exact && !plan.inexact[chunk.item]) return;
  const int pass = blockIdx.y % static_cast<int>(N_PASSES);
  const i64 column = blockIdx.y / N_PASSES * COLUMNS;
  const int n_columns = static_cast<int>(min(static_cast<i64>(COLUMNS), plan.width - column));
  const int n_groups = n_columns / 32, n_parts = WARPS / n_groups;
  const int group = warp_of() % n_groups, part = warp_of() / n_groups;
  Pool pool{memory};
  const Sides sides = take_sides(plan, pool);
  double* const shared_sums = pool.take<double>(SLOTS * COLUMNS);
  int* const part_rows = pool.take<int>(WARPS * SLOTS);
  double* const part_weight = pool.take<double>(WARPS * SLOTS);
  double* const part_count = pool.take<double>(WARPS * SLOTS);
  double* const scratch = pool.take<double>(WARPS);
  load_cuts(plan, chunk.node, chunk.item, sides);
  for (int k = threadIdx.x; k < WARPS * SLOTS; k += THREADS) {
    part_rows[k] = 0;
    part_weight[k] = part_count[k] = 0.0;
  }
  double sums[4][4] = {};
  double exact_sums[exact ? SLOTS : 1] = {};
  double2 scale = {0.0, 0.0};
  const bool counting = column == 0;
  for (int begin = chunk.begin; begin < chunk.end; begin += TILE_ROWS) {
    const int n = min(TILE_ROWS, chunk.end - begin);
    __syncthreads();
    {
      const int i = threadIdx.x;
      const int row = plan.rows[level & 1][begin + (i < n ? i : 0)];
      u32 word = 0;
      if (i < n) {
        const u32 factor = factor_at(plan, chunk.node.tree, row);
        if (FEW) {
          Value x[CUTS];
          kept_values(plan, begin + i, x);
          word = sides_of_values(plan, sides, x, factor, pass);
        } else {
          word = sides_of(plan, sides, plan.X + row * plan.n_features, factor, pass);
        }
      }
      rows[i] = row;
      words[i] = word;
      if (counting && !exact) {
        const double weight = i < n ? weight_at(plan, chunk.node.tree, row) : 0.0;
        const double count = i < n && !PLAIN ? count_at(plan, chunk.node.tree, row) : 0.0;
        // Pointers such that the slots of the pass come first.
        count_slots(plan, word, weight, count, pass, part_rows + (warp_of() - pass) * SLOTS,
                    part_weight + (warp_of() - pass) * SLOTS,
                    part_count + (warp_of() - pass) * SLOTS);
        if (pass == 0) {
          scale.x += weight * plan.squares[2 * static_cast<i64>(row)];
          scale.y += weight * plan.squares[2 * static_cast<i64>(row) + 1];
        }
      }
    }
    __syncthreads();
    if constexpr (exact) {
      if (threadIdx.x < n_columns) {
        for (int i = 0; i < n; ++i) {
          const double factor = float_of(words[i] >> 16);
          const double x =
              factor * output_of(plan.weighted[rows[i] * plan.width + column + threadIdx.x]);
#pragma unroll
          for (int s = 0; s < SLOTS; ++s) exact_sums[s] += words[i] >> s & 1 ? x : 0.0;
        }
      }
    } else if (part < n_parts) {
      // Sums of 64 rows in float32 are added to sums in float64.
      for (int at = 64 * part; at < n; at += 64 * n_parts) {
        float some[4][4] = {};
        add_rows(plan.weighted + column + 32 * group, plan.width, rows + at, words + at,
                 min(64, (n - at + 7) / 8 * 8), some);
#pragma unroll
        for (int c = 0; c < 4; ++c) {
#pragma unroll
          for (int i = 0; i < 4; ++i) sums[c][i] += some[c][i];
        }
      }
    }
  }
  double* const out = plan.partial +
                      (static_cast<i64>(chunk.index) * N_PASSES + pass) * SLOTS * plan.width +
                      column;
  if constexpr (exact) {
    if (threadIdx.x < n_columns) {
#pragma unroll
      for (int s = 0; s < SLOTS; ++s) out[s * plan.width + threadIdx.x] = exact_sums[s];
    }
    return;
  }
  for (int q = 0; q < n_parts; ++q) {
    __syncthreads();
    if (part != q) continue;
    for (int c = 0; c < 4; ++c) {
      for (int i = 0; i < 4; ++i) {
        double& sum =
            shared_sums[((lane_of() >> 2) + 8 * (i >> 1)) * COLUMNS + 32 * group + column_of(c, i)];
        sum = q == 0 ? sums[c][i] : sum + sums[c][i];
      }
    }
  }
  __syncthreads();
  for (int k = threadIdx.x; k < SLOTS * n_columns; k += THREADS) {
    out[k / n_columns * plan.width + k % n_columns] =
        shared_sums[k / n_columns * COLUMNS + k % n_columns];
  }
  if (!counting) return;
  const int slot = pass * SLOTS + threadIdx.x;
  if (threadIdx.x < SLOTS && slot < plan.n_slots) {
    int total = 0;
    double weight = 0.0, count = 0.0;
    for (int w = 0; w < WARPS; ++w) {
      total += part_rows[w * SLOTS + threadIdx.x];
      weight += part_weight[w * SLOTS + threadIdx.x];
      count += part_count[w * SLOTS + threadIdx.x];
    }
    const i64 at = chunk.index * plan.n_slots + slot;
    plan.slot_rows[at] = total;
    plan.slot_weight[at] = PLAIN ? total : weight;
    plan.slot_count[at] = PLAIN ? total : count;
  }
  if (pass > 0) return;
  scale.x = sum_of_block(scale.x, scratch);
  scale.y = sum_of_block(scale.y, scratch);
  if (threadIdx.x == 0) {
    plan.scale[2 * static_cast<i64>(chunk.index)] = scale.x;
    plan.scale[2 * static_cast<i64>(chunk.index) + 1] = scale.y;
  }
}

KERNEL(THREADS, 2) sum_chunks(RECORD(Plan) plan, int n_items, int level) {
  SHARED memory[];
  sum_chunk<false>(plan, n_items, level, memory);
}

KERNEL(THREADS, 2) sum_chunks_exactly(RECORD(Plan) plan, int n_items, int level) {
  SHARED memory[];
  if (plan.n_items[4] == 0) return;
  sum_chunk<true>(plan, n_items, level, memory);
}
