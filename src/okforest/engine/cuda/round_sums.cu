// Sums over the rows of the nodes that are evaluated in a round, in float64.

// Adds to the sums of all slots of a pass, for 32 columns, by one warp: sums[a][g] are those of
// slot 8 a + lane / 4 and of columns 4 (2 (lane % 4) + i) + g. The number of rows is a multiple of
// four.
__device__ inline void add_rows_exactly(const double* columns, i64 width, const int* rows,
                                        const u32* words, const double* weights, int n,
                                        double sums[PRODUCTS][4][2]) {
  const int slot = lane_of() >> 2, place = lane_of() & 3;
  columns += 4 * slot;
#pragma unroll 4
  for (int k = 0; k < n; k += 4) {
    const u32 word = words[k + place];
    const double weight = weights[k + place];
    const double2* const line = reinterpret_cast<const double2*>(columns + rows[k + place] * width);
    const double2 x0 = line[0], x1 = line[1];
#pragma unroll
    for (int a = 0; a < PRODUCTS; ++a) {
      const double factor = word >> (8 * a + slot) & 1 ? weight : 0.0;
      multiply_doubles(sums[a][0], factor, x0.x);
      multiply_doubles(sums[a][1], factor, x0.y);
      multiply_doubles(sums[a][2], factor, x1.x);
      multiply_doubles(sums[a][3], factor, x1.y);
    }
  }
}

// The sums of a chunk of a node that is evaluated, over the rows on the left of each cut. A block
// takes one pass over some slots: blockIdx.y numbers the groups of columns.
KERNEL(THREADS, 2) sum_items(RECORD(Plan) plan, RECORD(Rounds) rounds) {
  SHARED memory[];
  __shared__ int rows[TILE_ROWS];
  __shared__ u32 words[TILE_ROWS];
  __shared__ double weights[TILE_ROWS];
  const int n_passes = static_cast<int>(plan.n_passes), n_parts = static_cast<int>(rounds.n_parts);
  const int index = blockIdx.x / n_passes, pass = blockIdx.x % n_passes;
  Chunk chunk;
  if (!find_chunk(plan, 2, 1, index, chunk)) return;
  const i64 column = blockIdx.y * static_cast<i64>(32 * WARPS);
  const int n_groups = static_cast<int>(min(static_cast<i64>(WARPS), (plan.width - column) / 32));
  const int group = warp_of() % n_groups, part = warp_of() / n_groups;
  const int n_of_part = TILE_ROWS / n_parts;
  Pool pool{memory};
  const Sides sides = take_sides(plan, pool);
  int* const part_rows = pool.take<int>(WARPS * SLOTS);
  double* const part_weight = pool.take<double>(WARPS * SLOTS);
  double* const part_count = pool.take<double>(WARPS * SLOTS);
  double* const scratch = pool.take<double>(WARPS);
  load_cuts(plan, chunk.node, chunk.item, sides);
  for (int k = threadIdx.x; k < WARPS * SLOTS; k += THREADS) {
    part_rows[k] = 0;
    part_weight[k] = part_count[k] = 0.0;
  }
  double sums[PRODUCTS][4][2] = {};
  double scale = 0.0;
  const bool counting = blockIdx.y == 0;
  for (int begin = chunk.begin; begin < chunk.end; begin += TILE_ROWS) {
    const int n = min(TILE_ROWS, chunk.end - begin), i = threadIdx.x;
    __syncthreads();
    const int row = plan.rows[1][begin + (i < n ? i : 0)];
    u32 word = 0;
    double weight = 0.0, count = 0.0;
    if (i < n) {
      weight = weight_at(plan, 0, row);
      count = count_at(plan, 0, row);
      if (plan.n_kept > 0) {
        Value x[CUTS];
        kept_values(plan, begin + i, x);
        word = sides_of_values(plan, sides, x, 0, pass);
      } else {
        word = sides_of(plan, sides, plan.X + row * plan.n_features, 0, pass);
      }
      if (counting && pass == 0) {
        scale += weight * rounds.squares[row];
        plan.rows[0][begin + i] = row;
      }
    }
    rows[i] = row;
    words[i] = word;
    weights[i] = weight;
    if (counting) {
      // Pointers such that the slots of the pass come first.
      count_slots(plan, word, weight, count, pass, part_rows + (warp_of() - pass) * SLOTS,
                  part_weight + (warp_of() - pass) * SLOTS,
                  part_count + (warp_of() - pass) * SLOTS);
    }
    __syncthreads();
    const int first = part * n_of_part;
    if (part < n_parts && first < n) {
      add_rows_exactly(rounds.phi + column + 32 * group, plan.width, rows + first, words + first,
                       weights + first, min(n_of_part, (n - first + 3) / 4 * 4), sums);
    }
  }
  if (part < n_parts) {
    double* const out =
        plan.partial +
        ((index * static_cast<i64>(n_parts) + part) * n_passes + pass) * SLOTS * plan.width +
        column + 32 * group;
#pragma unroll
    for (int a = 0; a < PRODUCTS; ++a) {
#pragma unroll
      for (int g = 0; g < 4; ++g) {
        double* const of_slot = out + (8 * a + (lane_of() >> 2)) * plan.width + g;
        of_slot[8 * (lane_of() & 3)] = sums[a][g][0];
        of_slot[8 * (lane_of() & 3) + 4] = sums[a][g][1];
      }
    }
  }
  if (!counting) return;
  __syncthreads();
  const int slot = pass * SLOTS + threadIdx.x;
  if (threadIdx.x < SLOTS && slot < plan.n_slots) {
    int total = 0;
    double weight = 0.0, count = 0.0;
    for (int w = 0; w < WARPS; ++w) {
      total += part_rows[w * SLOTS + threadIdx.x];
      weight += part_weight[w * SLOTS + threadIdx.x];
      count += part_count[w * SLOTS + threadIdx.x];
    }
    const i64 at = index * plan.n_slots + slot;
    plan.slot_rows[at] = total;
    plan.slot_weight[at] = plan.plain ? total : weight;
    plan.slot_count[at] = plan.plain ? total : count;
  }
  if (pass > 0) return;
  scale = sum_of_block(scale, scratch);
  if (threadIdx.x == 0) plan.scale[index] = scale;
}

// Adds the sums of all chunks of a node. A block takes 32 columns of one slot: blockIdx.y is the
// node.
KERNEL(THREADS, 4) add_chunks(RECORD(Plan) plan, RECORD(Rounds) rounds) {
  __shared__ double shared[WARPS][32];
  __shared__ double scratch[WARPS];
  const int item = blockIdx.y, first = plan.first_chunk[item];
  const int n_chunks = plan.first_chunk[item + 1] - first;
  if (n_chunks == 0) return;
  const int n_groups = static_cast<int>(plan.width / 32);
  const int slot = blockIdx.x / n_groups, group = blockIdx.x % n_groups;
  const i64 stride = plan.n_passes * SLOTS * plan.width, n = n_chunks * rounds.n_parts;
  const double* const from =
      plan.partial + first * rounds.n_parts * stride + slot * plan.width + 32 * group + lane_of();
  double sum = 0.0;
#pragma unroll 8
  for (i64 c = n * warp_of() / WARPS; c < n * (warp_of() + 1) / WARPS; ++c) sum += from[c * stride];
  shared[warp_of()][lane_of()] = sum;
  __syncthreads();
  if (warp_of() == 0) {
    sum = 0.0;
    for (int w = 0; w < WARPS; ++w) sum += shared[w][lane_of()];
    const i64 column = 32 * group + lane_of();
    rounds.item_sums[(item * plan.n_slots + slot) * plan.width + column] = sum;
    if (slot == 0) rounds.sums[plan.large[1][item].parent * plan.width + column] = sum;
  }
  if (group > 0) return;
  double rows = 0.0, weight = 0.0, count = 0.0, scale = 0.0;
  for (int c = first + threadIdx.x; c < first + n_chunks; c += THREADS) {
    rows += plan.slot_rows[c * plan.n_slots + slot];
    weight += plan.slot_weight[c * plan.n_slots + slot];
    count += plan.slot_count[c * plan.n_slots + slot];
    if (slot == 0) scale += plan.scale[c];
  }
  rows = sum_of_block(rows, scratch);
  weight = sum_of_block(weight, scratch);
  count = sum_of_block(count, scratch);
  scale = sum_of_block(scale, scratch);
  if (threadIdx.x > 0) return;
  rounds.item_rows[item * plan.n_slots + slot] = rows;
  rounds.item_weight[item * plan.n_slots + slot] = weight;
  rounds.item_count[item * plan.n_slots + slot] = count;
  if (slot == 0) rounds.item_scale[item] = scale;
}

// A node's total variance, and whether most of its digits are lost by cancellation; by a block.
__device__ inline double variance_of(const Plan& plan, const Rounds& rounds, int item, bool& lost,
                                     double* scratch) {
  const double* const sum = rounds.item_sums + item * plan.n_slots * plan.width;
  double square = 0.0;
  for (i64 column = threadIdx.x; column < plan.width; column += THREADS) {
    square += sum[column] * sum[column];
  }
  square = sum_of_block(square, scratch);
  const double scale = rounds.item_scale[item];
  const double variance = scale - square / rounds.item_weight[item * plan.n_slots];
  lost = variance <= 1e-6 * scale && scale > 0.0;
  return variance;
}

// Sums the squares around the mean of a node, chunk by chunk, where these digits are needed.
KERNEL(THREADS, 4) measure_spread(RECORD(Plan) plan, RECORD(Rounds) rounds) {
  __shared__ double scratch[WARPS];
  Chunk chunk;
  if (!find_chunk(plan, 2, 1, chunk)) return;
  bool lost;
  variance_of(plan, rounds, chunk.item, lost, scratch);
  if (!lost) return;
  const double* const sum = rounds.item_sums + chunk.item * plan.n_slots * plan.width;
  const double weight = rounds.item_weight[chunk.item * plan.n_slots];
  double spread = 0.0;
  for (int i = chunk.begin + warp_of(); i < chunk.end; i += WARPS) {
    const int row = plan.rows[1][i];
    double square = 0.0;
    for (i64 column = lane_of(); column < plan.width; column += 32) {
      const double d = rounds.phi[row * plan.width + column] - sum[column] / weight;
      square += d * d;
    }
    spread += weight_at(plan, 0, row) * square;
  }
  spread = sum_of_block(spread, scratch);
  if (threadIdx.x == 0) rounds.spread[blockIdx.x] = spread;
}
