// Chunks of the rows of large nodes: their list, the features drawn, and the ranges of these.
// Results do not depend on the order of execution.

__device__ inline int chunk_size(int n) {
  const int n_chunks = min(MOST_CHUNKS, (n + CHUNK - 1) / CHUNK);
  return ((n + n_chunks - 1) / n_chunks + 63) / 64 * 64;
}

__device__ inline int n_chunks_of(int n) { return (n + chunk_size(n) - 1) / chunk_size(n); }

// Numbers the chunks of all nodes of a level, and orders them by their place in the node; by one
// block. Rows keep their order: blocks that run at once then read the same rows, for other trees,
// and find them in the cache.
KERNEL(1024, 1) list_chunks(RECORD(Plan) plan, int n_items, int level) {
  __shared__ int before[1024], place[MOST_CHUNKS];
  const Item* const items = plan.large[level & 1];
  if (threadIdx.x == 0) plan.n_items[1] = plan.n_items[4] = 0;
  for (int k = threadIdx.x; k < MOST_CHUNKS; k += 1024) place[k] = 0;
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
      for (int c = 0; c < n; ++c) {
        plan.chunk_node[first + c] = i;
        atomicAdd(&place[c * MOST_CHUNKS / n], 1);
      }
    }
    done += before[1023];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    plan.first_chunk[n_items] = done;
    for (int k = 0, next = 0; k < MOST_CHUNKS; ++k) {
      const int n = place[k];
      place[k] = next;
      next += n;
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < n_items; i += 1024) {
    const int first = plan.first_chunk[i], n = plan.first_chunk[i + 1] - first;
    for (int c = 0; c < n; ++c) {
      plan.chunk_order[atomicAdd(&place[c * MOST_CHUNKS / n], 1)] = first + c;
    }
  }
}

// Draws the features of node `item`, by one warp. `order` is the natural order of the features.
__device__ inline void draw_for(const Plan& plan, int item, u64 seed, int* order) {
  const int n = static_cast<int>(plan.max_features), p = static_cast<int>(plan.n_features);
  const i64 at = static_cast<i64>(item) * n;
  for (int k = lane_of(); k < n; k += 32) {
    plan.low[at + k] = NO_LOW;
    plan.high[at + k] = NO_HIGH;
    plan.missing[at + k] = 0;
    if (NATURAL) plan.drawn[at + k] = k;
  }
  if (!NATURAL && (FEW || n <= 32)) {
    const int feature = draw_by_warp(seed, n, p);
    if (lane_of() < n) plan.drawn[at + lane_of()] = feature;
  } else if (lane_of() == 0 && !NATURAL) {
    for (int k = 0; k < n; ++k) plan.drawn[at + k] = draw(order, seed, k, p);
    put_back(order, seed, n, p);
  }
  __syncwarp();
}

KERNEL(THREADS, 1) draw_features(RECORD(Plan) plan, int n_items, int level) {
  const int worker = blockIdx.x * WARPS + warp_of(), n_workers = gridDim.x * WARPS;
  int* const order = plan.order + static_cast<i64>(worker) * plan.n_features;
  for (int item = worker; item < n_items; item += n_workers) {
    draw_for(plan, item, plan.large[level & 1][item].seed, order);
  }
}

// The rows of a chunk.
struct Chunk {
  Item node;
  int index, item, begin, end;  // positions
};

// Finds chunk number `index`; returns false if there are fewer.
__device__ inline bool find_chunk(const Plan& plan, int n_items, int level, int index,
                                  Chunk& chunk) {
  if (index >= plan.first_chunk[n_items]) return false;
  chunk.index = index;
  chunk.item = plan.chunk_node[index];
  chunk.node = plan.large[level & 1][chunk.item];
  const int size = chunk_size(chunk.node.end - chunk.node.begin);
  chunk.begin = chunk.node.begin + (index - plan.first_chunk[chunk.item]) * size;
  chunk.end = min(chunk.node.end, chunk.begin + size);
  return true;
}

// Finds the chunk of a block.
__device__ inline bool find_chunk(const Plan& plan, int n_items, int level, Chunk& chunk) {
  const int block = static_cast<int>(blockIdx.x);
  if (block >= plan.first_chunk[n_items]) return false;
  const int index = plan.chunk_order != nullptr ? plan.chunk_order[block] : block;
  return find_chunk(plan, n_items, level, index, chunk);
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
      const bool any = ANY_MISSING && __any_sync(~0u, !present);
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
KERNEL(THREADS, 4) find_ranges(RECORD(Plan) plan, int n_items, int level) {
  Chunk chunk;
  if (!find_chunk(plan, n_items, level, chunk)) return;
  const int* const rows = plan.rows[level & 1];
  const int n = static_cast<int>(plan.max_features);
  const i64 at = static_cast<i64>(chunk.item) * n;
  if (FEW) return find_few_ranges(plan, chunk, rows, n, at);
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
