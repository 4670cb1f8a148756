// From one level to the next: the children of nodes that were split, and the lists of their rows.

#define TILE 1024  // positions of a list that a block of threads takes

// The children of each node that was split, in the order of their rows.
KERNEL(THREADS, 4) make_children(RECORD(Plan), RECORD(Level) level) {
  const i64 item = blockIdx.x * static_cast<i64>(THREADS) + threadIdx.x;
  if (item >= level.n_items || level.n_left[item] == 0) return;
  const int child = 2 * level.rank[item];
  level.next_begin[child] = level.begin[item];
  level.next_end[child] = level.next_begin[child + 1] = level.middle[item];
  level.next_end[child + 1] = level.end[item];
  level.next_seed[child] = derive(level.seed[item], 1);
  level.next_seed[child + 1] = derive(level.seed[item], 2);
}

// The side of each row, and the node of each position in the next level.
KERNEL(THREADS, 4) mark_rows(RECORD(Plan) plan, RECORD(Level) level) {
  const i64 at = blockIdx.x * static_cast<i64>(THREADS) + threadIdx.x;
  if (at >= level.n) return;
  const int item = level.node_at[at];
  if (item < 0 || level.n_left[item] == 0) {
    level.next_node_at[at] = -1;
    return;
  }
  level.next_node_at[at] = 2 * level.rank[item] + (at >= level.middle[item] ? 1 : 0);
  const int row = list_of(plan, level, static_cast<int>(plan.n_features))[at];
  const Value x = value_at(plan, row, level.feature[item]);
  level.on_left[row] = is_missing(x) ? level.missing_left[item] != 0 : x <= level.threshold[item];
}

// Whether the row at a position of a list goes to the left side of a split.
__device__ inline bool is_on_left(const Level& level, const int* list, i64 at) {
  if (at >= level.n) return false;
  const int item = level.node_at[at];
  return item >= 0 && level.n_left[item] > 0 && level.on_left[list[at]];
}

// Counts the rows on the left in each tile of each list.
KERNEL(THREADS, 4) count_lefts(RECORD(Plan) plan, RECORD(Level) level) {
  __shared__ int counts[WARPS];
  const int* const list = list_of(plan, level, blockIdx.y);
  int count = 0;
  for (int k = threadIdx.x; k < TILE; k += THREADS) {
    const bool left = is_on_left(level, list, blockIdx.x * static_cast<i64>(TILE) + k);
    count += __popc(__ballot_sync(~0u, left));
  }
  if (lane_of() == 0) counts[warp_of()] = count;
  __syncthreads();
  if (threadIdx.x > 0) return;
  count = 0;
  for (int w = 0; w < WARPS; ++w) count += counts[w];
  level.lefts[blockIdx.y * static_cast<i64>(gridDim.x) + blockIdx.x] = count;
}

// Divides the rows of each node in all lists, keeping their order.
KERNEL(THREADS, 4) divide_lists(RECORD(Plan) plan, RECORD(Level) level) {
  __shared__ int counts[WARPS];
  const int* const list = list_of(plan, level, blockIdx.y);
  int* const next = level.next_list + blockIdx.y * level.n;
  int done = level.lefts[blockIdx.y * static_cast<i64>(gridDim.x) + blockIdx.x];
  for (int k = threadIdx.x; k < TILE; k += THREADS) {
    const i64 at = blockIdx.x * static_cast<i64>(TILE) + k;
    const bool left = is_on_left(level, list, at);
    const u32 lefts = __ballot_sync(~0u, left);
    __syncthreads();
    if (lane_of() == 0) counts[warp_of()] = __popc(lefts);
    __syncthreads();
    int before = done;
    for (int w = 0; w < WARPS; ++w) {
      if (w < warp_of()) before += counts[w];
      done += counts[w];
    }
    before += __popc(lefts & ((1u << lane_of()) - 1));
    if (at >= level.n) continue;
    const int item = level.node_at[at];
    i64 to = at;
    if (item >= 0 && level.n_left[item] > 0) {
      const int inside = before - level.left_before[item];  // on the left, in the node, before
      to = left ? level.begin[item] + inside
                : level.middle[item] + (at - level.begin[item]) - inside;
    }
    next[to] = list[at];
  }
}
