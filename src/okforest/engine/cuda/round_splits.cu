// The best splits of the nodes that are evaluated in a round.

// Rounds to about nine digits, so that priorities that differ by rounding errors tie.
__device__ inline double coarse(double value) {
  int exponent;
  const double mantissa = frexp(value, &exponent);
  return ldexp(rint(mantissa * 1073741824.0), exponent - 30);
}

__device__ inline bool is_left_of(const Plan& plan, const Split& split, int row) {
  const Value x = static_cast<Value>(plan.X[row * plan.n_features + split.feature]);
  return is_missing(x) ? split.missing_left : x <= split.threshold;
}

// The gain of a split that was not among the cuts, from all rows of its node.
__device__ __noinline__ double gain_of_split(const Plan& plan, const Rounds& rounds,
                                             const int* rows, int n, const Split& split,
                                             double weight, const double* mean, double* scratch) {
  double left_weight = 0.0, norm = 0.0;
  for (int k = threadIdx.x; k < n; k += THREADS) {
    if (is_left_of(plan, split, rows[k])) left_weight += weight_at(plan, 0, rows[k]);
  }
  left_weight = sum_of_block(left_weight, scratch);
#pragma unroll 1
  for (i64 column = threadIdx.x; column < plan.width; column += THREADS) {
    double left = 0.0;
    for (int k = 0; k < n; ++k) {
      if (!is_left_of(plan, split, rows[k])) continue;
      left += weight_at(plan, 0, rows[k]) * rounds.phi[rows[k] * plan.width + column];
    }
    const double d = left - left_weight * mean[column];
    norm += d * d;
  }
  norm = sum_of_block(norm, scratch);
  return norm * weight / (left_weight * (weight - left_weight));
}

// Writes, for each chunk of a node, the rows on the left in the chunks before it.
__device__ inline void count_before(const Plan& plan, const Rounds& rounds, int item,
                                    const Item& node, const Split& split, int slot,
                                    bool add_missing) {
  __shared__ int before[WARPS];
  const i64 first = plan.first_chunk[item];
  const int n_chunks = plan.first_chunk[item + 1] - plan.first_chunk[item];
  const int size = chunk_size(node.end - node.begin);
  int done = 0;
  for (int tile = 0; tile < n_chunks; tile += THREADS) {
    const int c = tile + threadIdx.x;
    int own = 0;
    if (c < n_chunks && slot >= 0) {
      const int* const of_chunk = plan.slot_rows + (first + c) * plan.n_slots + slot;
      own = of_chunk[0] + (add_missing ? of_chunk[1] : 0);
    } else if (c < n_chunks) {  // a split that was not among the cuts
      const int begin = node.begin + c * size, end = min(node.end, begin + size);
      for (int i = begin; i < end; ++i) own += is_left_of(plan, split, plan.rows[1][i]);
    }
    int sum = own;  // of this lane and those before it
    for (int d = 1; d < 32; d *= 2) {
      const int other = __shfl_sync(~0u, sum, max(lane_of() - d, 0));
      if (lane_of() >= d) sum += other;
    }
    __syncthreads();
    if (lane_of() == 31) before[warp_of()] = sum;
    __syncthreads();
    int place = done + sum - own;
    for (int w = 0; w < WARPS; ++w) {
      if (w < warp_of()) place += before[w];
      done += before[w];
    }
    if (c < n_chunks) rounds.before[node.begin + c * size] = place;
  }
}

// Finds the best split of each node that is evaluated, and its priority; one block per node.
KERNEL(THREADS, 1) choose_for_items(RECORD(Plan) plan, RECORD(Rounds) rounds) {
  SHARED memory[];
  __shared__ int chosen;
  const int item = blockIdx.x;
  if (plan.first_chunk[item] == plan.first_chunk[item + 1]) return;
  Pool pool{memory};
  const Sides sides = take_sides(plan, pool);
  double* const mean = pool.take<double>(plan.width);
  double* const scratch = pool.take<double>(WARPS);
  const Item node = plan.large[1][item];
  const int n = node.end - node.begin, id = node.parent;
  const int* const rows = plan.rows[1] + node.begin;
  int* const order = plan.order + static_cast<i64>(item) * plan.n_features;
  const i64 at = item * plan.n_slots;
  load_cuts(plan, node, item, sides);
  for (int s = threadIdx.x; s < plan.n_slots; s += THREADS) {
    sides.slot_rows[s] = static_cast<int>(rounds.item_rows[at + s]);
    sides.slot_weight[s] = rounds.item_weight[at + s];
    sides.slot_count[s] = rounds.item_count[at + s];
  }
  __syncthreads();
  const double weight = sides.slot_weight[0], count = sides.slot_count[0];
  for (int k = threadIdx.x; k < plan.max_features; k += THREADS) find_left(plan, sides, k);
  for (i64 column = threadIdx.x; column < plan.width; column += THREADS) {
    mean[column] = rounds.item_sums[at * plan.width + column] / weight;
  }
  bool lost;
  double variance = variance_of(plan, rounds, item, lost, scratch);
  if (lost) {
    variance = 0.0;
    for (int c = plan.first_chunk[item] + threadIdx.x; c < plan.first_chunk[item + 1];
         c += THREADS) {
      variance += rounds.spread[c];
    }
    variance = sum_of_block(variance, scratch);
  }
  if (n == 1) variance = 0.0;
  const double scale = rounds.item_scale[item];
  const double noise = fmax(NOISE * variance, ROUNDING * sqrt(fmax(variance * scale, 0.0)));
  const bool open = n > 1 && may_split(plan, node.depth, count, variance, scale);
  __syncthreads();
  for (int k = warp_of(); open && k < plan.max_features; k += WARPS) {
    const double* const sum = rounds.item_sums + (at + slot_of(plan, k)) * plan.width;
    const bool add_missing = sides.missing[k] && sides.missing_left[k];
    const double left = sides.left_weight[k];
    double norm = 0.0;
    for (i64 column = lane_of(); column < plan.width; column += 32) {
      double d = sum[column] - left * mean[column];
      if (add_missing) d += sum[plan.width + column];
      norm += d * d;
    }
    norm = sum_of_warp(norm);
    if (lane_of() > 0) continue;
    sides.gain[k] = sides.cut[k].possible
                        ? gain_of(plan, norm, weight, count, left, sides.left_count[k])
                        : -1.0;
    sides.error[k] = 0.0;
  }
  __syncthreads();
  if (warp_of() == 0) {
    const int cut = open ? choose(plan, node.seed, sides, noise, order) : NONE;
    if (lane_of() == 0) chosen = cut;
  }
  __syncthreads();
  Split split{-1, 0.0, false, 0};
  double gain = -1.0;
  bool found = false;
  if (chosen >= 0) {
    split = {sides.feature[chosen], sides.cut[chosen].threshold, sides.missing_left[chosen] != 0,
             node.begin + sides.left_rows[chosen]};
    gain = sides.gain[chosen];
    found = is_enough(plan, gain, noise);
  } else if (open) {
    found = draw_more(plan, node, rows, n, weight, count, noise, order, scratch, split);
    if (found && rounds.by_gain) {
      gain = gain_of_split(plan, rounds, rows, n, split, weight, mean, scratch);
    }
  }
  if (found) {
    const bool add_missing =
        chosen >= 0 && sides.missing[chosen] != 0 && sides.missing_left[chosen] != 0;
    count_before(plan, rounds, item, node, split, chosen >= 0 ? slot_of(plan, chosen) : -1,
                 add_missing);
  }
  if (threadIdx.x > 0) return;
  rounds.weight[id] = weight;
  rounds.variance[id] = variance;
  if (!found) return;
  rounds.feature[id] = split.feature;
  rounds.threshold[id] = split.threshold;
  rounds.missing_left[id] = split.missing_left;
  rounds.middle[id] = split.middle;
  rounds.priority[id] = coarse(rounds.by_gain ? gain : variance);
}
