// Nodes of at most 32 rows: one warp computes the inner products of their outputs, in float64, and
// grows all below from them. A node is a set of bits, one for each row.

// The values of a feature in the rows of a node, and their range.
struct Range {
  Key low, high;
  u32 missing;
};

__device__ inline Value small_value(const Plan& plan, int row, int feature, bool in) {
  return in ? static_cast<Value>(plan.X[row * plan.n_features + feature]) : Value(0);
}

__device__ inline Range find_range(Value x, bool in) {
  Range range;
  const bool present = in && !is_missing(x);
  range.low = least_of_warp(present ? key_of(x) : NO_LOW);
  range.high = most_of_warp(present ? key_of(x) : NO_HIGH);
  range.missing = __ballot_sync(~0u, in && !present);
  return range;
}

// The left side of a cut with missing values, and whether they go there.
__device__ inline u32 left_side(const Plan& plan, const Small& s, u32 rows, u32 left, u32 missing,
                                double draw, double weight, bool& missing_left,
                                double& left_weight) {
  left_weight = weight_of(plan, s.weight, left);
  missing_left = left_weight > weight - left_weight;
  if (missing == 0) return left;
  const double present = weight - weight_of(plan, s.weight, missing);
  missing_left =
      missing_go_left(draw, present, left_weight, __popc(left), __popc(rows & ~missing & ~left));
  if (missing_left) left |= missing;
  left_weight = weight_of(plan, s.weight, left);
  return left;
}

// Scores some cuts of a node, at most 16 of them from number `first` on. Lanes c and c + 16 take
// cut c, and every other row each.
__device__ inline void score_cuts(const Plan& plan, const Small& s, const SmallNode& node,
                                  int first, int n_here, double weight, double count,
                                  double mean_norm) {
  const int n = __popc(node.rows), c = lane_of() & 15, half = lane_of() >> 4;
  const int own = first + min(c, n_here - 1), feature = s.feature[own];
  const Input* const column = plan.X + feature;
  Value low = INFINITE, high = -INFINITE;
  u32 missing = 0, left = 0;
#pragma unroll 4
  for (int j = half; j < n; j += 2) {
    const Value x = static_cast<Value>(column[s.listed[j] * plan.n_features]);
    s.values[16 * j + c] = x;
    low = x < low ? x : low;
    high = x > high ? x : high;
    missing |= static_cast<u32>(is_missing(x)) << s.place[j];
  }
  const Value other_low = __shfl_xor_sync(~0u, low, 16),
              other_high = __shfl_xor_sync(~0u, high, 16);
  low = other_low < low ? other_low : low;
  high = other_high > high ? other_high : high;
  missing |= __shfl_xor_sync(~0u, missing, 16);
  const bool present = low <= high;
  const Cut cut = make_cut(node.seed, feature, present ? key_of(low) : NO_LOW,
                           present ? key_of(high) : NO_HIGH, missing != 0);
#pragma unroll 4
  for (int j = half; j < n; j += 2) {
    left |= static_cast<u32>(s.values[16 * j + c] <= cut.rounded) << s.place[j];
  }
  left |= __shfl_xor_sync(~0u, left, 16);
  const bool possible = c < n_here && cut.possible;
  bool missing_left;
  double left_weight;
  left = left_side(plan, s, node.rows, left, missing, cut.draw, weight, missing_left, left_weight);
  // The sums of the two sides around the mean are opposite.
  u32 side = 2 * __popc(left) <= n ? left : node.rows & ~left;
  if (!possible) side = 0;
  const double side_weight = side == left ? left_weight : weight_of(plan, s.weight, side);
  const double norm = norm_of(plan, s, side, side_weight, weight, mean_norm);
  if (lane_of() < n_here) {
    s.gain[own] =
        possible ? gain_of(plan, norm, weight, count, left_weight, weight_of(plan, s.count, left))
                 : -1.0;
    s.left[own] = left;
    s.threshold[own] = cut.threshold;
    s.missing_left[own] = missing_left;
  }
  __syncwarp();
}

// Draws the cuts of a node and returns the one of the largest gain, the first among equals, or
// NONE.
__device__ inline int choose_cut(const Plan& plan, const Small& s, const SmallNode& node, int row,
                                 double weight, double count, double mean_norm, double noise,
                                 int* order) {
  const int lane = lane_of(), p = static_cast<int>(plan.n_features);
  const int n_cuts = static_cast<int>(plan.max_features);
  if (NATURAL) {
#pragma unroll 1
    for (int k = lane; k < n_cuts; k += 32) s.feature[k] = k;
  } else if (FEW || n_cuts <= 32) {
    const int feature = draw_by_warp(node.seed, n_cuts, p);
    if (lane < n_cuts) s.feature[lane] = feature;
  } else if (lane == 0) {
#pragma unroll 1
    for (int k = 0; k < n_cuts; ++k) s.feature[k] = draw(order, node.seed, k, p);
    put_back(order, node.seed, n_cuts, p);
  }
  if (node.rows >> lane & 1) {
    const int j = __popc(node.rows & ((1u << lane) - 1));
    s.listed[j] = row;
    s.place[j] = lane;
  }
  __syncwarp();
#pragma unroll 1
  for (int first = 0; first < n_cuts; first += CUTS) {
    score_cuts(plan, s, node, first, min(CUTS, n_cuts - first), weight, count, mean_norm);
  }
  double largest = -1.0;
#pragma unroll 1
  for (int k = lane; k < n_cuts; k += 32) largest = fmax(largest, s.gain[k]);
  largest = most_of_warp(largest);
  if (largest < 0.0) return NONE;
  const double least = least_equal(largest, noise);
  u32 best = n_cuts;
  int n_best = 0;
#pragma unroll 1
  for (int k = lane; k < n_cuts; k += 32) {
    if (s.gain[k] < least) continue;
    best = k < best ? k : best;
    ++n_best;
  }
  best = least_of_warp(best);
  if (!NATURAL) return static_cast<int>(best);
  for (int d = 16; d > 0; d /= 2) n_best += __shfl_xor_sync(~0u, n_best, d);
  if (n_best == 1) return static_cast<int>(best);
  int chosen = 0;
  if (lane == 0) {
    int k = 0;
    do {
      chosen = draw(order, node.seed, k++, p);
    } while (s.gain[chosen] < least);
    put_back(order, node.seed, k, p);
  }
  return __shfl_sync(~0u, chosen, 0);
}

// Tries features one by one, from draw number `first` on, until one splits the node. Returns the
// rows on the left, or zero.
__device__ inline u32 try_features(const Plan& plan, const Small& s, const SmallNode& node, int row,
                                   int first, double weight, double count, double variance,
                                   double mean_norm, double noise, int* order, Split& split) {
  const int lane = lane_of(), n = __popc(node.rows), p = static_cast<int>(plan.n_features);
  const bool in = node.rows >> lane & 1;
  u32 left = 0;
  int k = first;
  bool ordered = false;  // whether `order` has the draws so far; the first one does not need it
#pragma unroll 1
  for (bool open = true; open && k < p; ++k) {
    int feature = drawn_place(node.seed, 0, p);
    if (k > 0) {
      if (lane == 0) {
#pragma unroll 1
        for (int j = ordered ? k : 0; j <= k; ++j) feature = draw(order, node.seed, j, p);
      }
      ordered = true;
      feature = __shfl_sync(~0u, feature, 0);
    }
    const Value x = small_value(plan, row, feature, in);
    const Range range = find_range(x, in);
    const Cut cut = make_cut(node.seed, feature, range.low, range.high, range.missing != 0);
    if (!cut.possible) continue;
    bool missing_left;
    double left_weight;
    const u32 side = left_side(plan, s, node.rows, __ballot_sync(~0u, in && x <= cut.rounded),
                               range.missing, cut.draw, weight, missing_left, left_weight);
    double norm = variance * left_weight * (weight - left_weight) / weight;  // of two rows
    if (n > 2 && plan.min_gain > 0.0) {
      norm = norm_of(plan, s, side, left_weight, weight, mean_norm);
    }
    const double gain =
        gain_of(plan, norm, weight, count, left_weight, weight_of(plan, s.count, side));
    if (gain < 0.0) continue;
    open = false;
    if (!is_enough(plan, gain, noise)) continue;
    left = side;
    split = {feature, cut.threshold, missing_left, 0};
  }
  if (ordered && lane == 0) put_back(order, node.seed, k, p);
  __syncwarp();
  return left;
}

// Splits nodes of two rows by the first feature drawn, one node per lane. Returns the number of
// nodes that this does not split; they are the first of s.pairs then.
__device__ inline int split_pairs(const Plan& plan, const Small& s, int tree, int row,
                                  double square, double top_scale, int n_pairs) {
  const int lane = lane_of(), p = static_cast<int>(plan.n_features);
  const SmallNode node = s.pairs[min(lane, n_pairs - 1)];
  const int i = __ffs(node.rows) - 1, j = 31 - __clz(node.rows);
  const int row_i = __shfl_sync(~0u, row, i), row_j = __shfl_sync(~0u, row, j);
  const double square_i = __shfl_sync(~0u, square, i), square_j = __shfl_sync(~0u, square, j);
  const int feature = drawn_place(node.seed, 0, p);
  const Value x = static_cast<Value>(plan.X[row_i * plan.n_features + feature]);
  const Value y = static_cast<Value>(plan.X[row_j * plan.n_features + feature]);
  const double weight = s.weight[i] + s.weight[j], count = s.count[i] + s.count[j];
  double scale = 0.0;
  const double variance = variance_of_pair(s, i, j, weight, scale);
  const double noise = fmax(NOISE * variance, ROUNDING * scale);
  if (variance <= PURE * top_scale) top_scale = s.weight[i] * square_i + s.weight[j] * square_j;
  const int left = x < y ? i : j;
  const double left_weight = s.weight[left];
  const double norm = variance * left_weight * (weight - left_weight) / weight;
  const double gain = gain_of(plan, norm, weight, count, left_weight, s.count[left]);
  const bool found = lane < n_pairs && (x < y || y < x) && gain >= 0.0 &&
                     is_enough(plan, gain, noise) &&
                     may_split(plan, node.depth, count, variance, top_scale);
  const u32 others = __ballot_sync(~0u, lane < n_pairs && !found);
  if (others >> lane & 1) s.pairs[__popc(others & ((1u << lane) - 1))] = node;
  if (found) {
    const Cut cut =
        make_cut(node.seed, feature, key_of(x < y ? x : y), key_of(x < y ? y : x), false);
    const Item item{node.begin, node.begin + 2, tree, node.depth, node.parent, 0, node.seed};
    const Split split{feature, cut.threshold, left_weight > weight - left_weight, node.begin + 1};
    write_split(plan, item, split, weight, variance);
    plan.members[node.begin] = left == i ? row_i : row_j;
    plan.members[node.begin + 1] = left == i ? row_j : row_i;
    write_leaf(plan, child_of(item, split.middle, false), 0.0, 0.0);
    write_leaf(plan, child_of(item, split.middle, true), 0.0, 0.0);
  }
  __syncwarp();
  return __popc(others);
}

KERNEL(32 * SMALL_WARPS, SMALL_BLOCKS) grow_small(RECORD(Plan) plan, int n_items) {
  SHARED memory[];
  Pool pool{memory};
  const Small s = take_small(plan, pool);
  const int lane = lane_of();
  const int worker = blockIdx.x * SMALL_WARPS + warp_of(), n_workers = gridDim.x * SMALL_WARPS;
  int* const order = plan.order + static_cast<i64>(worker) * plan.n_features;
  for (int item = worker; item < n_items; item += n_workers) {
    const Item top = plan.small[item];
    const int n_top = top.end - top.begin;
    const int row = plan.members[top.begin + (lane < n_top ? lane : 0)];
    s.weight[lane] = lane < n_top ? weight_at(plan, top.tree, row) : 0.0;
    s.count[lane] = lane < n_top ? count_at(plan, top.tree, row) : 0.0;
    const double square = plan.squares[2 * static_cast<i64>(row) + 1];
    const double top_scale = sum_of_warp(s.weight[lane] * square);
    find_gram(plan, row, n_top, s.gram);
    int n_waiting = 1, n_pairs = 0;
    bool paired = false;  // whether the pairs have been split together
    if (lane == 0) {
      s.stack[0] = {n_top == 32 ? ~0u : (1u << n_top) - 1, top.begin, top.depth, top.parent,
                    top.seed};
    }
    __syncwarp();
    while (n_waiting + n_pairs > 0) {
      if (n_waiting == 0 && !paired) {
        n_pairs = split_pairs(plan, s, top.tree, row, square, top_scale, n_pairs);
        paired = true;
        continue;
      }
      const SmallNode node = n_waiting > 0 ? s.stack[--n_waiting] : s.pairs[--n_pairs];
      const int n = __popc(node.rows);
      const bool in = node.rows >> lane & 1;
      const Item as_item{node.begin, node.begin + n, top.tree, node.depth, node.parent,
                         0,          node.seed};
      const double weight = weight_of(plan, s.weight, node.rows);
      const double count = weight_of(plan, s.count, node.rows);
      double variance = 0.0, mean_norm = 0.0, gram_scale = 0.0;
      u32 left = 0;
      Split split{-1, 0.0, false, 0};
      if (n > 1) {
        variance = find_variance(plan, s, node.rows, weight, mean_norm, gram_scale);
        // The scale of all rows decides already, except where outputs are almost equal.
        const double scale = variance > PURE * top_scale
                                 ? top_scale
                                 : sum_of_warp(in ? s.weight[lane] * square : 0.0);
        const double noise = fmax(NOISE * variance, ROUNDING * gram_scale);
        if (may_split(plan, node.depth, count, variance, scale)) {
          const bool compared = n > 2 && plan.max_features > 1;
          const int best =
              compared ? choose_cut(plan, s, node, row, weight, count, mean_norm, noise, order)
                       : NONE;
          if (best >= 0) {
            if (is_enough(plan, s.gain[best], noise)) left = s.left[best];
            split = {s.feature[best], s.threshold[best], s.missing_left[best] != 0, 0};
          } else if (!compared || !NATURAL) {
            left =
                try_features(plan, s, node, row, compared ? static_cast<int>(plan.max_features) : 0,
                             weight, count, variance, mean_norm, noise, order, split);
          }
        }
      }
      __syncwarp();
      if (left == 0) {
        if (in) plan.members[node.begin + __popc(node.rows & ((1u << lane) - 1))] = row;
        if (lane == 0) write_leaf(plan, as_item, weight, variance);
        continue;
      }
      split.middle = node.begin + __popc(left);
      // The larger side waits below the smaller one: few nodes wait at any time. A single row is a
      // leaf. Lanes 0 and 1 take the two sides.
      const bool right_first = 2 * __popc(left) < n;
      const bool right = right_first == (lane == 0);
      const u32 rows = right ? node.rows & ~left : left;
      const int single = (rows & (rows - 1)) == 0 ? __ffs(rows) - 1 : -1;
      const int single_row = __shfl_sync(~0u, row, max(single, 0));
      const bool two = __popc(rows) == 2;
      const u32 waiting = __ballot_sync(~0u, lane < 2 && single < 0 && !two);
      const u32 pairs = __ballot_sync(~0u, lane < 2 && two);
      if (lane < 2) {
        const Item child = child_of(as_item, split.middle, right);
        if (single >= 0) {
          plan.members[child.begin] = single_row;
          write_leaf(plan, child, 0.0, 0.0);
        } else {
          SmallNode* const next =
              two ? s.pairs + n_pairs + (pairs & lane) : s.stack + n_waiting + (waiting & lane);
          *next = {rows, child.begin, child.depth, child.parent, child.seed};
        }
      }
      n_waiting += __popc(waiting);
      n_pairs += __popc(pairs);
      if (lane == 2) write_split(plan, as_item, split, weight, variance);
      __syncwarp();
    }
  }
}
