// Chunks of the rows of large nodes: the ranges of features, and sums over rows.
// Results do not depend on the order of execution.

__device__ inline int chunk_size(int n) {
  const int n_chunks = min(MOST_CHUNKS, (n + CHUNK - 1) / CHUNK);
  return ((n + n_chunks - 1) / n_chunks + 63) / 64 * 64;
}

__device__ inline int n_chunks_of(int n) { return (n + chunk_size(n) - 1) / chunk_size(n); }

// Numbers the chunks of all nodes of a level; by one block.
KERNEL(1024, 1) list_chunks(const Plan* given, int n_items, int level) {
  __shared__ int before[1024];
  const Plan& plan = *given;
  const Item* const items = plan.large[level & 1];
  if (threadIdx.x == 0) plan.n_items[1] = plan.n_items[4] = 0;
  int done = 0;
  for (int begin = 0; begin < n_items; begin += 1024) {
    const int i = begin + threadIdx.x;
    const int n = i < n_items ? n_chunks_of(items[i].end - items[i].begin) : 0;
    before[threadIdx.x] = n;
    __syncthreads();
    for (int d = 1; d < 1024; d *= 2) {
      const int more = threadIdx.x >= d ? before[threadIdx.x - d] : 0;
      __syncthreads();
      before[threadIdx.x] += more;
      __syncthreads();
    }
    const int first = done + before[threadIdx.x] - n;
    if (i < n_items) {
      plan.first_chunk[i] = first;
      plan.inexact[i] = 0;
      for (int c = 0; c < n; ++c) plan.chunk_node[first + c] = i;
    }
    done += before[1023];
    __syncthreads();
  }
  if (threadIdx.x == 0) plan.first_chunk[n_items] = done;
}

// Draws the features of each node; one warp per node.
KERNEL(THREADS, 1) draw_features(const Plan* given, int n_items, int level) {
  const Plan& plan = *given;
  const int worker = blockIdx.x * WARPS + warp_of(), n_workers = gridDim.x * WARPS;
  const int n = static_cast<int>(plan.max_features), p = static_cast<int>(plan.n_features);
  int* const order = plan.order + static_cast<i64>(worker) * plan.n_features;
  for (int item = worker; item < n_items; item += n_workers) {
    const i64 at = static_cast<i64>(item) * n;
    const u64 seed = plan.large[level & 1][item].seed;
    for (int k = lane_of(); k < n; k += 32) {
      plan.low[at + k] = NO_LOW;
      plan.high[at + k] = NO_HIGH;
      plan.missing[at + k] = 0;
      if (plan.natural) plan.drawn[at + k] = k;
    }
    if (!plan.natural && n <= 32) {
      const int feature = draw_by_warp(seed, n, p);
      if (lane_of() < n) plan.drawn[at + lane_of()] = feature;
    } else if (lane_of() == 0 && !plan.natural) {
      for (int k = 0; k < n; ++k) plan.drawn[at + k] = draw(order, seed, k, p);
      put_back(order, seed, n, p);
    }
    __syncwarp();
  }
}

// The rows of a chunk.
struct Chunk {
  Item node;
  int item, begin, end;  // positions
};

__device__ inline bool find_chunk(const Plan& plan, int n_items, int level, Chunk& chunk) {
  if (static_cast<int>(blockIdx.x) >= plan.first_chunk[n_items]) return false;
  chunk.item = plan.chunk_node[blockIdx.x];
  chunk.node = plan.large[level & 1][chunk.item];
  const int size = chunk_size(chunk.node.end - chunk.node.begin);
  chunk.begin = chunk.node.begin + (blockIdx.x - plan.first_chunk[chunk.item]) * size;
  chunk.end = min(chunk.node.end, chunk.begin + size);
  return true;
}

// The ranges of at most CUTS features: a thread reads all values of a row, and keeps them for the
// sums.
__device__ inline void find_few_ranges(const Plan& plan, const Chunk& chunk, const int* rows, int n,
                                       i64 at) {
  Key low = NO_LOW, high = NO_HIGH;  // of feature number `lane`
  bool missing = false;
  for (int begin = chunk.begin; begin < chunk.end; begin += THREADS) {
    const int i = min(begin + static_cast<int>(threadIdx.x), chunk.end - 1);
    Value x[CUTS];
    load_values(plan, plan.drawn + at, n, rows[i], x);
    keep_values(plan, i, x);
#pragma unroll
    for (int k = 0; k < CUTS; ++k) {
      if (k >= n) continue;
      const bool present = !is_missing(x[k]);
      const Key key = key_of(x[k]);
      const Key least = least_of_warp(present ? key : NO_LOW);
      const Key most = most_of_warp(present ? key : NO_HIGH);
      const bool any = plan.any_missing && __any_sync(~0u, !present);
      if (lane_of() != k) continue;
      low = least < low ? least : low;
      high = most > high ? most : high;
      missing |= any;
    }
  }
  if (lane_of() >= n) return;
  if (low <= high) {
    atomicMin(&plan.low[at + lane_of()], low);
    atomicMax(&plan.high[at + lane_of()], high);
  }
  if (missing) plan.missing[at + lane_of()] = 1;
}

// The ranges of the features drawn, chunk by chunk. Minima do not depend on their order.
KERNEL(THREADS, 4) find_ranges(const Plan* given, int n_items, int level) {
  const Plan& plan = *given;
  Chunk chunk;
  if (!find_chunk(plan, n_items, level, chunk)) return;
  const int* const rows = plan.rows[level & 1];
  const int n = static_cast<int>(plan.max_features);
  const i64 at = static_cast<i64>(chunk.item) * n;
  if (plan.n_kept > 0) return find_few_ranges(plan, chunk, rows, n, at);
  const int n_tiles = (chunk.end - chunk.begin + 127) / 128;
  for (int k = 0; k < n; ++k) {
    const Input* const x = plan.X + plan.drawn[at + k];
    Key low = NO_LOW, high = NO_HIGH;
    bool missing = false;
    for (int tile = warp_of(); tile < n_tiles; tile += WARPS) {
      Value value[4];
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int i = chunk.begin + tile * 128 + c * 32 + lane_of();
        value[c] = static_cast<Value>(x[rows[min(i, chunk.end - 1)] * plan.n_features]);
      }
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        if (is_missing(value[c])) {
          missing = true;
          continue;
        }
        const Key key = key_of(value[c]);
        low = key < low ? key : low;
        high = key > high ? key : high;
      }
    }
    low = least_of_warp(low);
    high = most_of_warp(high);
    missing = __any_sync(~0u, missing);
    if (lane_of() == 0 && low <= high) {
      atomicMin(&plan.low[at + k], low);
      atomicMax(&plan.high[at + k], high);
    }
    if (lane_of() == 0 && missing) plan.missing[at + k] = 1;
  }
}

__device__ inline void load_cuts(const Plan& plan, const Item& node, int item, const Sides& sides) {
  for (int k = threadIdx.x; k < plan.max_features; k += THREADS) {
    const i64 at = item * plan.max_features + k;
    sides.feature[k] = plan.drawn[at];
    sides.missing[k] = plan.missing[at];
    sides.cut[k] =
        make_cut(node.seed, plan.drawn[at], plan.low[at], plan.high[at], plan.missing[at] != 0);
  }
  __syncthreads();
}

#define TILE_ROWS 256

// The sums of a chunk: blockIdx.y numbers the groups of columns, and the passes over them.
template <bool exact>
__device__ inline void sum_chunk(const Plan& plan, int n_items, int level, unsigned char* memory) {
  __shared__ int rows[TILE_ROWS];
  __shared__ u32 words[TILE_ROWS];
  Chunk chunk;
  if (!find_chunk(plan, n_items, level, chunk)) return;
  if (exact && !plan.inexact[chunk.item]) return;
  const int pass = blockIdx.y % static_cast<int>(plan.n_passes);
  const i64 column = blockIdx.y / plan.n_passes * COLUMNS;
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
        if (plan.n_kept > 0) {
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
        const double count = i < n && !plan.plain ? count_at(plan, chunk.node.tree, row) : 0.0;
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
        float some[1][4][4] = {};
        add_rows<1>(plan.weighted + column + 32 * group, plan.width, rows + at, words + at,
                    min(64, (n - at + 7) / 8 * 8), some);
#pragma unroll
        for (int c = 0; c < 4; ++c) {
#pragma unroll
          for (int i = 0; i < 4; ++i) sums[c][i] += some[0][c][i];
        }
      }
    }
  }
  double* const out =
      plan.partial + (blockIdx.x * plan.n_passes + pass) * SLOTS * plan.width + column;
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
    const i64 at = blockIdx.x * plan.n_slots + slot;
    plan.slot_rows[at] = total;
    plan.slot_weight[at] = plan.plain ? total : weight;
    plan.slot_count[at] = plan.plain ? total : count;
  }
  if (pass > 0) return;
  scale.x = sum_of_block(scale.x, scratch);
  scale.y = sum_of_block(scale.y, scratch);
  if (threadIdx.x == 0) {
    plan.scale[2 * static_cast<i64>(blockIdx.x)] = scale.x;
    plan.scale[2 * static_cast<i64>(blockIdx.x) + 1] = scale.y;
  }
}

KERNEL(THREADS, 2) sum_chunks(const Plan* given, int n_items, int level) {
  SHARED memory[];
  sum_chunk<false>(*given, n_items, level, memory);
}

KERNEL(THREADS, 2) sum_chunks_exactly(const Plan* given, int n_items, int level) {
  SHARED memory[];
  if (given->n_items[4] == 0) return;
  sum_chunk<true>(*given, n_items, level, memory);
}
