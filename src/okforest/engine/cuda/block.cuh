// What a block of threads does with the rows of a node: sums over them by matrix products, the
// choice of a cut, and exact gains where the choice is close.

#define CUTS 16       // values of a row that a thread keeps
#define NONE (-1)     // no cut can split the node
#define INEXACT (-3)  // gains differ by less than their errors

__device__ inline double sum_of_block(double x, double* scratch) {
  x = sum_of_warp(x);
  __syncthreads();
  if (lane_of() == 0) scratch[warp_of()] = x;
  __syncthreads();
  x = 0.0;
  for (int w = 0; w < n_warps(); ++w) x += scratch[w];
  return x;
}

// Slots of the sums over rows: all rows, then those on the left of each cut and, if any value may
// be missing, those without a value.
__device__ inline int slot_of(const Plan& plan, int cut) {
  return ANY_MISSING ? 2 + 2 * cut : 1 + cut;
}

// The cuts of a node, and what is known about their sides.
struct Sides {
  int* feature;  // per cut
  Cut* cut;
  int* missing;  // whether a value is missing
  double *left_weight, *left_count, *gain, *error;
  int* left_rows;
  int* missing_left;
  double *slot_weight, *slot_count;  // per slot
  int* slot_rows;
};

// The sides of a row, as bits: one for each slot of a pass. The upper half of the word is the row's
// factor in the sums, in float16.
__device__ inline u32 sides_of(const Plan& plan, const Sides& sides, const Input* x, u32 factor,
                               int pass) {
  u32 bits = pass == 0 ? 1 : 0;
  const int step = ANY_MISSING ? 2 : 1;
  const int first = slot_of(plan, 0);
  const int n = static_cast<int>(plan.max_features);
  int k = pass == 0 ? 0 : (pass * SLOTS - first) / step;
#pragma unroll 4
  for (int slot = first + k * step - pass * SLOTS; k < n && slot < SLOTS; ++k, slot += step) {
    const Value value = static_cast<Value>(x[sides.feature[k]]);
    bits |= static_cast<u32>(value <= sides.cut[k].rounded) << slot;
    if (ANY_MISSING) bits |= static_cast<u32>(is_missing(value)) << (slot + 1);
  }
  return bits | factor << 16;
}

// The values of some cuts' features in a row; zero beyond the last.
__device__ inline void load_values(const Plan& plan, const int* feature, int n, int row,
                                   Value x[CUTS]) {
  const Input* const line = plan.X + row * plan.n_features;
#pragma unroll
  for (int k = 0; k < CUTS; ++k) x[k] = k < n ? static_cast<Value>(line[feature[k]]) : Value(0);
}

// Values of a row that are kept in memory, four at a time.
struct alignas(16) Four {
  Value x[4];
};

__device__ inline void keep_values(const Plan& plan, int position, const Value x[CUTS]) {
  Four* const to = reinterpret_cast<Four*>(plan.values + position * plan.n_kept);
#pragma unroll
  for (int k = 0; k < CUTS; k += 4) {
    if (k < plan.n_kept) to[k / 4] = {x[k], x[k + 1], x[k + 2], x[k + 3]};
  }
}

__device__ inline void kept_values(const Plan& plan, int position, Value x[CUTS]) {
  const Four* const from = reinterpret_cast<const Four*>(plan.values + position * plan.n_kept);
#pragma unroll
  for (int k = 0; k < CUTS; k += 4) {
    Four four{};
    if (k < plan.n_kept) four = from[k / 4];
#pragma unroll
    for (int c = 0; c < 4; ++c) x[k + c] = four.x[c];
  }
}

// The word of sides_of, from values that have been read.
__device__ inline u32 sides_of_values(const Plan& plan, const Sides& sides, const Value x[CUTS],
                                      u32 factor, int pass) {
  u32 bits = pass == 0 ? 1 : 0;
#pragma unroll
  for (int k = 0; k < CUTS; ++k) {
    const int slot = slot_of(plan, k) - pass * SLOTS;
    if (k >= plan.max_features || slot < 0 || slot >= SLOTS) continue;
    bits |= static_cast<u32>(x[k] <= sides.cut[k].rounded) << slot;
    if (ANY_MISSING) bits |= static_cast<u32>(is_missing(x[k])) << (slot + 1);
  }
  return bits | factor << 16;
}

__device__ inline u32 factor_at(const Plan& plan, int tree, int row) {
  const float times = BOOTSTRAP ? static_cast<float>(weight_at(plan, tree, row)) : 1.0f;
  return half_of(times);
}

// Adds to the sums of 16 slots, for 32 columns, by one warp. sums[c][0] and [1] are those of slot
// lane / 4 and columns 8 * (lane % 4) + c and + 4 more; [2] and [3] those of eight slots later. The
// number of rows is a multiple of eight; rows and words are in shared memory.
__device__ inline void add_rows(const u32* columns, i64 width, const int* rows, const u32* words,
                                int n, float sums[4][4]) {
  const int slot = lane_of() >> 2, place = lane_of() & 3;
  columns += 4 * slot;
#pragma unroll 4
  for (int k = 0; k < n; k += 8) {
    const u32 word0 = words[k + place], word1 = words[k + place + 4];
    const uint4 x0 = *reinterpret_cast<const uint4*>(columns + rows[k + place] * width);
    const uint4 x1 = *reinterpret_cast<const uint4*>(columns + rows[k + place + 4] * width);
    const u32 pair0 = (word0 >> 16) * 0x10001u, pair1 = (word1 >> 16) * 0x10001u;
    const u32 a[4] = {word0 >> slot & 1 ? pair0 : 0, word0 >> (slot + 8) & 1 ? pair0 : 0,
                      word1 >> slot & 1 ? pair1 : 0, word1 >> (slot + 8) & 1 ? pair1 : 0};
    multiply_halves(sums[0], a, x0.x, x1.x);
    multiply_halves(sums[1], a, x0.y, x1.y);
    multiply_halves(sums[2], a, x0.z, x1.z);
    multiply_halves(sums[3], a, x0.w, x1.w);
  }
}

// The column, of 32, that entry i of sums[c] belongs to; see add_rows.
__device__ inline int column_of(int c, int i) { return 8 * (lane_of() & 3) + 4 * (i & 1) + c; }

// From the sums over slots: rows, weights and counts on the left of a cut, with missing values.
__device__ inline void find_left(const Plan& plan, const Sides& sides, int k) {
  const int slot = slot_of(plan, k);
  int rows = sides.slot_rows[slot];
  double weight = sides.slot_weight[slot], count = sides.slot_count[slot];
  const double all = sides.slot_weight[0];
  bool missing_left = weight > all - weight;
  if (sides.missing[k]) {
    const int n_missing = sides.slot_rows[slot + 1];
    missing_left = missing_go_left(sides.cut[k].draw, all - sides.slot_weight[slot + 1], weight,
                                   rows, sides.slot_rows[0] - n_missing - rows);
    if (missing_left) {
      rows += n_missing;
      weight += sides.slot_weight[slot + 1];
      count += sides.slot_count[slot + 1];
    }
  }
  sides.left_rows[k] = rows;
  sides.left_weight[k] = weight;
  sides.left_count[k] = count;
  sides.missing_left[k] = missing_left;
}

// Chooses the cut of the largest gain, the first among equals, by one warp. `order` is the natural
// order of the features. The pointers are passed by value: the caller's stay in registers.
__device__ __noinline__ int choose(const Plan& plan, u64 seed, Sides sides, double noise,
                                   int* order) {
  const int n = static_cast<int>(plan.max_features);
  double lower = -1.0;
#pragma unroll 1
  for (int k = lane_of(); k < n; k += 32) lower = fmax(lower, sides.gain[k] - sides.error[k]);
  const double least = least_equal(most_of_warp(lower), noise);
  u32 first = n, n_close = 0;
  bool inexact = false;
#pragma unroll 1
  for (int k = lane_of(); k < n; k += 32) {
    const double gain = sides.gain[k], error = sides.error[k];
    if (gain < 0.0 || gain + error < least) continue;
    first = k < first ? k : first;
    ++n_close;
    inexact |= error > 0.0;
  }
  first = least_of_warp(first);
  if (first == n) return NONE;
  for (int d = 16; d > 0; d /= 2) n_close += __shfl_xor_sync(~0u, n_close, d);
  if (n_close > 1 && __any_sync(~0u, inexact)) return INEXACT;
  if (plan.min_gain > 0.0 && is_enough(plan, sides.gain[first] - sides.error[first], noise) !=
                                 is_enough(plan, sides.gain[first] + sides.error[first], noise)) {
    return INEXACT;
  }
  if (n_close == 1 || !NATURAL) return static_cast<int>(first);
  // Among equal splits of all features, a random one.
  int chosen = 0;
  if (lane_of() == 0) {
    const int p = static_cast<int>(plan.n_features);
    int k = 0;
    do {
      chosen = draw(order, seed, k++, p);
    } while (sides.gain[chosen] < least);
    put_back(order, seed, k, p);
  }
  return __shfl_sync(~0u, chosen, 0);
}

// The gain of a split, or with left_weight = 0 the node's total variance, in float64.
__device__ __noinline__ double exact_norm(const Plan& plan, const Item& node, const int* rows,
                                          int n, const Split& split, double weight,
                                          double left_weight, double* scratch) {
#if INPUT_BYTES == 8
  const Value rounded = split.threshold;
#else
  const Value rounded = __double2float_rd(split.threshold);
#endif
  double norm = 0.0;
#pragma unroll 1
  for (i64 column = threadIdx.x; column < plan.width; column += n_threads()) {
    double sum = 0.0, left = 0.0;
    for (int k = 0; k < n; ++k) {
      double x = output_of(plan.weighted[rows[k] * plan.width + column]);
      if (BOOTSTRAP) x *= weight_at(plan, node.tree, rows[k]);
      sum += x;
      if (left_weight == 0.0) continue;
      const Value value = static_cast<Value>(plan.X[rows[k] * plan.n_features + split.feature]);
      if (goes_left(value, rounded, split.missing_left)) left += x;
    }
    const double mean = sum / weight;
    if (left_weight > 0.0) {
      norm += (left - left_weight * mean) * (left - left_weight * mean);
      continue;
    }
    for (int k = 0; k < n; ++k) {
      const double x = output_of(plan.phi[rows[k] * plan.width + column]) - mean;
      norm += weight_at(plan, node.tree, rows[k]) * x * x;
    }
  }
  return sum_of_block(norm, scratch);
}

// Tries further features, one by one, until one splits the node; by the whole block.
__device__ __noinline__ bool draw_more(const Plan& plan, const Item& node, const int* rows, int n,
                                       double weight, double count, double noise, int* order,
                                       double* scratch, Split& split) {
  __shared__ int shared_feature;
  __shared__ Key shared_low, shared_high;
  __shared__ int shared_missing;
  const int p = static_cast<int>(plan.n_features);
  int n_drawn = 0;
  bool found = false;
  for (int k = 0; k < p && !found && !NATURAL; ++k) {
    if (threadIdx.x == 0) {
      shared_feature = draw(order, node.seed, k, p);
      shared_low = NO_LOW;
      shared_high = NO_HIGH;
      shared_missing = 0;
    }
    n_drawn = k + 1;
    __syncthreads();
    if (k < plan.max_features) {
      __syncthreads();
      continue;
    }
    split.feature = shared_feature;
    Key low = NO_LOW, high = NO_HIGH;
#pragma unroll 1
    for (int i = threadIdx.x; i < n; i += n_threads()) {
      const Value x = static_cast<Value>(plan.X[rows[i] * plan.n_features + split.feature]);
      if (is_missing(x)) {
        shared_missing = 1;
        continue;
      }
      const Key key = key_of(x);
      low = key < low ? key : low;
      high = key > high ? key : high;
    }
    atomicMin(&shared_low, low);
    atomicMax(&shared_high, high);
    __syncthreads();
    const bool missing = shared_missing;
    const Cut cut = make_cut(node.seed, split.feature, shared_low, shared_high, missing);
    if (!cut.possible) {
      __syncthreads();
      continue;
    }
    double left_weight = 0.0, left_count = 0.0, missing_weight = 0.0, missing_count = 0.0;
    double n_left = 0.0, n_missing = 0.0;
#pragma unroll 1
    for (int i = threadIdx.x; i < n; i += n_threads()) {
      const Value x = static_cast<Value>(plan.X[rows[i] * plan.n_features + split.feature]);
      const double w = weight_at(plan, node.tree, rows[i]), c = count_at(plan, node.tree, rows[i]);
      if (is_missing(x)) {
        missing_weight += w, missing_count += c, n_missing += 1.0;
      } else if (x <= cut.rounded) {
        left_weight += w, left_count += c, n_left += 1.0;
      }
    }
    n_left = sum_of_block(n_left, scratch);
    left_weight = sum_of_block(left_weight, scratch);
    left_count = sum_of_block(left_count, scratch);
    split.missing_left = left_weight > weight - left_weight;
    if (missing) {
      n_missing = sum_of_block(n_missing, scratch);
      missing_weight = sum_of_block(missing_weight, scratch);
      missing_count = sum_of_block(missing_count, scratch);
      split.missing_left =
          missing_go_left(cut.draw, weight - missing_weight, left_weight, static_cast<int>(n_left),
                          static_cast<int>(n - n_missing - n_left));
      if (split.missing_left) {
        n_left += n_missing, left_weight += missing_weight, left_count += missing_count;
      }
    }
    split.threshold = cut.threshold;
    split.middle = node.begin + static_cast<int>(n_left);
    found = gain_of(plan, 0.0, weight, count, left_weight, left_count) >= 0.0;
    if (found && plan.min_gain > 0.0) {
      const double norm = exact_norm(plan, node, rows, n, split, weight, left_weight, scratch);
      const double gain = gain_of(plan, norm, weight, count, left_weight, left_count);
      if (!is_enough(plan, gain, noise)) {  // the node is a leaf
        found = false;
        break;
      }
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) put_back(order, node.seed, n_drawn, p);
  __syncthreads();
  return found;
}
