// What a block knows about a node of 33 to 1,024 rows: the cuts of its features, and their sides.

#define TILE (LARGE + 8 * MIDDLE_WARPS)
#define STACK 16
#define CLOSE 2        // cuts that are made exact at once
#define SUM_STRIDE 65  // of 64 columns: neighbours are in different banks of memory

struct Middle {
  Sides sides;
  float* sums;     // of each warp: 16 slots x 64 columns
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
  const i64 n_parts = MIDDLE_WARPS * N_PASSES * SLOTS;
  m.sides = take_sides(plan, pool);
  m.sums = pool.take<float>(MIDDLE_WARPS * SLOTS * SUM_STRIDE);
  m.mean = pool.take<float>(COLUMNS);
  m.rows = pool.take<int>(TILE);
  m.words = pool.take<u32>(N_PASSES * TILE);
  m.moved = pool.take<int>(LARGE);
  m.part_rows = pool.take<int>(n_parts);
  m.part_weight = pool.take<double>(PLAIN ? 1 : n_parts);
  m.part_count = pool.take<double>(PLAIN ? 1 : n_parts);
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
  if (!NATURAL && (FEW || n_cuts <= 32)) {
    if (warp_of() == 0) {
      const int feature = draw_by_warp(node.seed, n_cuts, p);
      if (lane_of() < n_cuts) m.sides.feature[lane_of()] = feature;
    }
  } else if (!NATURAL) {
    if (threadIdx.x == 0) {
      for (int k = 0; k < n_cuts; ++k) m.sides.feature[k] = draw(order, node.seed, k, p);
      put_back(order, node.seed, n_cuts, p);
    }
  }
  for (int k = threadIdx.x; k < n_cuts; k += n_threads()) {
    if (NATURAL) m.sides.feature[k] = k;
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
        const bool any = ANY_MISSING && __any_sync(~0u, !present);
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
  const int n_parts = static_cast<int>(N_PASSES) * SLOTS;
  for (int k = threadIdx.x; k < n_warps() * n_parts; k += n_threads()) {
    m.part_rows[k] = 0;
    if (!PLAIN) m.part_weight[k] = m.part_count[k] = 0.0;
  }
  __syncthreads();
  double2 scale = {0.0, 0.0};
  const bool few = FEW;
  for (int begin = 0; begin < n_padded; begin += n_threads()) {
    const int i = begin + threadIdx.x;
    const int row = i < n ? rows[i] : -1;
    double weight = 0.0, count = 0.0;
    u32 factor = 0;
    if (row >= 0) {
      weight = weight_at(plan, node.tree, row);
      count = PLAIN ? 1.0 : count_at(plan, node.tree, row);
      scale.x += weight * plan.squares[2 * static_cast<i64>(row)];
      scale.y += weight * plan.squares[2 * static_cast<i64>(row) + 1];
      factor = factor_at(plan, node.tree, row);
      if (few && n > n_threads()) {
        load_values(plan, m.sides.feature, static_cast<int>(plan.max_features), row, values);
      }
    }
    for (int pass = 0; pass < N_PASSES; ++pass) {
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
      if (PLAIN) continue;
      weight += m.part_weight[w * n_parts + s];
      count += m.part_count[w * n_parts + s];
    }
    m.sides.slot_rows[s] = total;
    m.sides.slot_weight[s] = PLAIN ? total : weight;
    m.sides.slot_count[s] = PLAIN ? total : count;
  }
  __syncthreads();
  for (int k = threadIdx.x; k < plan.max_features; k += n_threads()) {
    find_left(plan, m.sides, k);
    m.norm[k] = 0.0;
  }
  __syncthreads();
  return scale;
}
