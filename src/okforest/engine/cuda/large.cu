// Nodes of more than 1,024 rows, level by level. Blocks of threads take chunks of a node's rows;
// sums over chunks are added in a fixed order, so that results do not depend on the order of
// execution.

__device__ inline void add_child(const Plan& plan, const Item& child, int level) {
  const int size = child.end - child.begin;
  if (size == 1) {
    write_leaf(plan, child, 0.0, 0.0);
  } else if (size <= SMALL) {
    plan.small[atomicAdd(&plan.n_items[3], 1)] = child;
  } else if (size <= LARGE) {
    plan.middle[atomicAdd(&plan.n_items[2], 1)] = child;
  } else {
    plan.large[(level + 1) & 1][atomicAdd(&plan.n_items[1], 1)] = child;
  }
}

// Chooses the split of a node from the sums over its chunks.
__device__ inline void choose_split(const Plan& plan, int item, int level, bool exact,
                                    const Sides& sides, double* mean, double* scratch) {
  __shared__ int chosen;
  const Item node = plan.large[level & 1][item];
  const i64 first = plan.first_chunk[item], n_chunks = plan.first_chunk[item + 1] - first;
  int* const order = plan.order + static_cast<i64>(blockIdx.x) * plan.n_features;
  load_cuts(plan, node, item, sides);
  for (int s = threadIdx.x; s < plan.n_slots; s += THREADS) {
    int rows = 0;
    double weight = 0.0, count = 0.0;
    for (i64 c = first; c < first + n_chunks; ++c) {
      rows += plan.slot_rows[c * plan.n_slots + s];
      weight += plan.slot_weight[c * plan.n_slots + s];
      count += plan.slot_count[c * plan.n_slots + s];
    }
    sides.slot_rows[s] = rows;
    sides.slot_weight[s] = weight;
    sides.slot_count[s] = count;
  }
  double scale = 0.0, raw_scale = 0.0;
  for (i64 c = first; c < first + n_chunks; ++c) {
    scale += plan.scale[2 * c];
    raw_scale += plan.scale[2 * c + 1];
  }
  __syncthreads();
  for (int k = threadIdx.x; k < plan.max_features; k += THREADS) find_left(plan, sides, k);
  const double weight = sides.slot_weight[0], count = sides.slot_count[0];
  const i64 stride = N_PASSES * SLOTS * plan.width;
  const auto sum_at = [&](int slot, i64 column) {
    const double* at = plan.partial + first * stride + slot * plan.width + column;
    double sum = 0.0;
#pragma unroll 4
    for (i64 c = 0; c < n_chunks; ++c) sum += at[c * stride];
    return sum;
  };
  double square = 0.0;
  for (i64 column = threadIdx.x; column < plan.width; column += THREADS) {
    const double sum = sum_at(0, column);
    mean[column] = sum / weight;
    square += sum * sum;
  }
  square = sum_of_block(square, scratch);
  const double variance = fmax(0.0, scale - square / weight);
  const double noise = fmax(NOISE * variance, ROUNDING * sqrt(variance * raw_scale));
  const bool open = may_split(plan, node.depth, count, variance, raw_scale);
  const double unit = exact ? 0.0 : 24 * 1.1920928955078125e-07;
  const double spread = unit * unit * scale;
  for (int k = warp_of(); open && k < plan.max_features; k += WARPS) {
    const int slot = slot_of(plan, k);
    const bool add_missing = sides.missing[k] && sides.missing_left[k];
    const double left = sides.left_weight[k];
    double norm = 0.0;
    for (i64 column = lane_of(); column < plan.width; column += 32) {
      double sum = sum_at(slot, column);
      if (add_missing) sum += sum_at(slot + 1, column);
      const double d = sum - left * mean[column];
      norm += d * d;
    }
    norm = sum_of_warp(norm);
    if (lane_of() > 0) continue;
    const double gain = sides.cut[k].possible
                            ? gain_of(plan, norm, weight, count, left, sides.left_count[k])
                            : -1.0;
    const double ratio = weight / (weight - left);
    sides.gain[k] = gain;
    sides.error[k] = gain < 0.0 ? 0.0 : 2.0 * sqrt(gain * spread * ratio) + spread * ratio;
  }
  __syncthreads();
  if (warp_of() == 0) {
    int cut = open ? choose(plan, node.seed, sides, noise, order) : NONE;
    if (!exact && variance < 1e-3 * scale) cut = INEXACT;
    if (lane_of() == 0) chosen = cut;
  }
  __syncthreads();
  if (chosen == INEXACT) {
    if (threadIdx.x == 0) {
      plan.inexact[item] = 1;
      atomicAdd(&plan.n_items[4], 1);
    }
    return;
  }
  Split split{-1, 0.0, false, 0};
  bool found = false;
  if (chosen >= 0) {
    split = {sides.feature[chosen], sides.cut[chosen].threshold, sides.missing_left[chosen] != 0,
             node.begin + sides.left_rows[chosen]};
    found = is_enough(plan, sides.gain[chosen], noise);
  } else if (open) {
    found = draw_more(plan, node, plan.rows[level & 1] + node.begin, node.end - node.begin, weight,
                      count, noise, order, scratch, split);
  }
  if (found && chosen < 0) {
    // Count the rows on the left of each chunk.
    const int* const rows = plan.rows[level & 1];
    const int size = chunk_size(node.end - node.begin);
    for (i64 c = warp_of(); c < n_chunks; c += WARPS) {
      const int begin = node.begin + static_cast<int>(c) * size;
      double n_left = 0.0;
      for (int i = begin + lane_of(); i < min(node.end, begin + size); i += 32) {
        const Value x = static_cast<Value>(plan.X[rows[i] * plan.n_features + split.feature]);
        const bool left = is_missing(x) ? split.missing_left : x <= split.threshold;
        n_left += left;
      }
      n_left = sum_of_warp(n_left);
      if (lane_of() == 0) plan.chunk_left[first + c] = static_cast<int>(n_left);
    }
  } else if (found) {
    const int slot = slot_of(plan, chosen);
    const bool add_missing = sides.missing[chosen] && sides.missing_left[chosen];
    for (i64 c = threadIdx.x; c < n_chunks; c += THREADS) {
      const int* const of_chunk = plan.slot_rows + (first + c) * plan.n_slots + slot;
      plan.chunk_left[first + c] = of_chunk[0] + (add_missing ? of_chunk[1] : 0);
    }
  }
  __syncthreads();
  if (threadIdx.x > 0) return;
  if (!found) {
    plan.taken[item] = 0;
    write_leaf(plan, node, weight, variance);
    return;
  }
  int before = 0;
  for (i64 c = first; c < first + n_chunks; ++c) {
    const int n = plan.chunk_left[c];
    plan.chunk_left[c] = before;
    before += n;
  }
  plan.taken[item] = 1;
  plan.middle_row[item] = split.middle;
  write_split(plan, node, split, weight, variance);
  add_child(plan, child_of(node, split.middle, false), level);
  add_child(plan, child_of(node, split.middle, true), level);
}

// One block per node. With `exact`, only nodes whose sums have been computed in float64.
KERNEL(THREADS, 2) choose_splits(RECORD(Plan) plan, int n_items, int level, int exact) {
  SHARED memory[];
  if (exact && plan.n_items[4] == 0) return;
  Pool pool{memory};
  const Sides sides = take_sides(plan, pool);
  double* const mean = pool.take<double>(plan.width);
  double* const scratch = pool.take<double>(WARPS);
  for (int item = blockIdx.x; item < n_items; item += gridDim.x) {
    if (!exact || plan.inexact[item]) {
      choose_split(plan, item, level, exact, sides, mean, scratch);
    }
    __syncthreads();
  }
}

// Divides the rows of each node, keeping their order. Rows of nodes that are not large any more go
// to `members`.
KERNEL(THREADS, 4) move_rows(RECORD(Plan) plan, int n_items, int level) {
  __shared__ int before[WARPS];
  Chunk chunk;
  if (!find_chunk(plan, n_items, level, chunk)) return;
  const int* const rows = plan.rows[level & 1];
  if (!plan.taken[chunk.item]) {
    for (int i = chunk.begin + threadIdx.x; i < chunk.end; i += THREADS) plan.members[i] = rows[i];
    return;
  }
  const int middle = plan.middle_row[chunk.item];
  const int feature = plan.feature[middle];
  const double threshold = plan.threshold[middle];
  const bool missing_left = plan.missing_left[middle];
  int* const next = plan.rows[(level + 1) & 1];
  int* const to_left = middle - chunk.node.begin > LARGE ? next : plan.members;
  int* const to_right = chunk.node.end - middle > LARGE ? next : plan.members;
  int done = plan.chunk_left[chunk.index];  // rows on the left so far
  for (int begin = chunk.begin; begin < chunk.end; begin += THREADS) {
    const int i = begin + threadIdx.x;
    __syncthreads();
    bool left = false;
    int row = 0;
    if (i < chunk.end) {
      row = rows[i];
      const Value x = static_cast<Value>(plan.X[row * plan.n_features + feature]);
      left = is_missing(x) ? missing_left : x <= threshold;
    }
    const u32 lefts = __ballot_sync(~0u, left);
    if (lane_of() == 0) before[warp_of()] = __popc(lefts);
    __syncthreads();
    int place = done;
    for (int w = 0; w < WARPS; ++w) {
      if (w < warp_of()) place += before[w];
      done += before[w];
    }
    place += __popc(lefts & ((1u << lane_of()) - 1));
    if (i >= chunk.end) continue;
    if (left) {
      to_left[chunk.node.begin + place] = row;
    } else {
      to_right[middle + (i - chunk.node.begin) - place] = row;
    }
  }
}
