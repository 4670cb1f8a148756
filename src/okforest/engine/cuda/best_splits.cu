// The best split of each node: the largest gain of all cuts of the features drawn, then the first
// cut that is as good.

// What a sweep over a chunk needs: the state of the left side before it, and missing values.
__device__ inline void begin_sweep(const Plan& plan, const Level& level, const Place& place, int k,
                                   int feature, const double mean[OWN], Swept& left,
                                   Missing& missing) {
  const int* const list = list_of(plan, level, feature);
  const i64 n_cuts = plan.max_features;
  find_missing(plan, list, feature, place.begin, place.end, missing);
  left.weight = left.count = 0.0;
#pragma unroll
  for (int v = 0; v < OWN; ++v) left.sum[v] = 0.0;
  if (!place.several) return sum_missing(plan, level, list, place.end, mean, missing);
  const i64 at = place.many * n_cuts + k;
  load_columns(level.part + at * WIDTH, left.sum);
  left.weight = level.part_weight[at];
  left.count = level.part_count[at];
  if (!missing.any) return;
  const i64 of_node = (level.many[place.item] - 1) * n_cuts + k;
  load_columns(level.missing_sum + of_node * WIDTH, missing.sum);
  missing.weight = level.missing_weight[of_node];
  missing.count = level.missing_count[of_node];
}

// The largest gain in a chunk; one team per chunk and feature drawn.
KERNEL(TEAM_THREADS, TEAM_BLOCKS) find_gains(RECORD(Plan) plan, RECORD(Level) level) {
  SHARED memory[];
  const int n_cuts = static_cast<int>(plan.max_features);
  const int unit = blockIdx.x / n_cuts, k = blockIdx.x % n_cuts;
  const int item = find_last(level.first_unit, static_cast<int>(level.n_items), unit);
  if (level.state[item] == LEAF) return;
  Pool pool{memory};
  const Norms norms = take_norms(plan, pool);
  const Place place = place_of(level, item, unit - level.first_unit[item]);
  const int feature = level.drawn[item * static_cast<i64>(n_cuts) + k];
  double mean[OWN];
  load_columns(level.mean + item * static_cast<i64>(WIDTH), mean);
  Swept left;
  Missing missing;
  begin_sweep(plan, level, place, k, feature, mean, left, missing);
  double most = -1.0;
  sweep(plan, level, list_of(plan, level, feature), feature, item, place.from, place.to, mean,
        missing, norms, left,
        [&most](int, double gain, double other, double) { most = fmax(most, fmax(gain, other)); });
  most = most_of_warp(most);
  if (threadIdx.x == 0) level.most[unit * static_cast<i64>(n_cuts) + k] = most;
}

// Chooses the feature of the largest gain, the first among equals; one warp per node.
KERNEL(32, 8) choose_features(RECORD(Plan) plan, RECORD(Level) level) {
  const i64 n_cuts = plan.max_features;
  int* const order = plan.order + blockIdx.x * plan.n_features;
  for (int item = blockIdx.x; item < level.n_items; item += gridDim.x) {
    if (level.state[item] == LEAF) continue;
    const int first = level.first_unit[item], last = level.first_unit[item + 1];
    const auto most_of = [&](int k) {
      double most = -1.0;
      for (int unit = first + lane_of(); unit < last; unit += 32) {
        most = fmax(most, level.most[unit * n_cuts + k]);
      }
      return most_of_warp(most);
    };
    double largest = -1.0;
    for (int k = 0; k < n_cuts; ++k) largest = fmax(largest, most_of(k));
    if (largest < 0.0) {
      if (plan.natural && lane_of() == 0) level.state[item] = LEAF;
      continue;
    }
    const double least = least_equal(largest, level.noise[item]);
    int chosen = -1, n_best = 0;
    for (int k = 0; k < n_cuts && (chosen < 0 || plan.natural); ++k) {
      const double most = most_of(k);
      if (most < 0.0 || most < least) continue;
      if (chosen < 0) chosen = k;
      ++n_best;
    }
    if (plan.natural && n_best > 1) {
      // Among equal splits of all features, a random one.
      const int p = static_cast<int>(plan.n_features);
      int n_drawn = 0;
      double most;
      do {
        if (lane_of() == 0) chosen = draw(order, level.seed[item], n_drawn, p);
        chosen = __shfl_sync(~0u, chosen, 0);
        most = most_of(chosen);
        ++n_drawn;
      } while (most < 0.0 || most < least);
      if (lane_of() == 0) put_back(order, level.seed[item], n_drawn, p);
    }
    __syncwarp();
    if (lane_of() == 0) {
      level.state[item] = CHOSEN;
      level.feature[item] = chosen;  // the number of the draw; finish_nodes replaces it
      level.least[item] = least;
    }
    __syncwarp();
  }
}

// The first cuts of the chosen feature that are good enough; one team per chunk.
KERNEL(TEAM_THREADS, TEAM_BLOCKS) take_cuts(RECORD(Plan) plan, RECORD(Level) level) {
  SHARED memory[];
  const int unit = blockIdx.x;
  const int item = find_last(level.first_unit, static_cast<int>(level.n_items), unit);
  if (level.state[item] != CHOSEN) return;
  Pool pool{memory};
  const Norms norms = take_norms(plan, pool);
  const Place place = place_of(level, item, unit - level.first_unit[item]);
  const int k = level.feature[item];
  const int feature = level.drawn[item * plan.max_features + k];
  const double least = level.least[item];
  double mean[OWN];
  load_columns(level.mean + item * static_cast<i64>(WIDTH), mean);
  Swept left;
  Missing missing;
  begin_sweep(plan, level, place, k, feature, mean, left, missing);
  Taken taken{{-1, -1}, {0.0, 0.0}, {0.0, 0.0}};
  sweep(plan, level, list_of(plan, level, feature), feature, item, place.from, place.to, mean,
        missing, norms, left,
        [&taken, least](int at, double gain, double other, double left_weight) {
          take_first(taken, 0, at, gain, least, left_weight);
          take_first(taken, 1, at, other, least, left_weight);
        });
  if (threadIdx.x > 0) return;
  for (int s = 0; s < 2; ++s) {
    level.cut[2 * unit + s] = taken.cut[s];
    level.cut_weight[2 * unit + s] = taken.weight[s];
    level.cut_gain[2 * unit + s] = taken.gain[s];
  }
}

// Records the split after a position of a list; with other != 0, missing values go left.
__device__ inline void write_cut(const Plan& plan, const Level& level, int item, int feature,
                                 int cut, int other, double left_weight, double gain) {
  const int* const list = list_of(plan, level, feature);
  const int begin = level.begin[item], end = level.end[item];
  Missing missing;
  find_missing(plan, list, feature, begin, end, missing);
  const double below = value_at(plan, list[cut], feature);
  const double above = cut == missing.first - 1 ? INFINITE : value_at(plan, list[cut + 1], feature);
  const double middle = __dadd_rn(below / 2, above / 2);  // not fused, as on the CPU
  const bool inside = middle >= below && (middle < above || above == INFINITE);
  const int n_left = cut + 1 - begin + (other ? end - missing.first : 0);
  const bool enough = is_enough(plan, gain, level.noise[item]);
  level.feature[item] = feature;
  level.threshold[item] = inside ? middle : below;
  level.missing_left[item] = missing.any ? other : left_weight > level.weight[item] - left_weight;
  level.middle[item] = begin + n_left;
  level.n_left[item] = enough ? n_left : 0;
}

// Tries further features, one by one, in nodes that none of those drawn can split; one team per
// node.
KERNEL(TEAM_THREADS, 1) try_features(RECORD(Plan) plan, RECORD(Level) level) {
  SHARED memory[];
  __shared__ int shared_feature;
  Pool pool{memory};
  const Norms norms = take_norms(plan, pool);
  const int p = static_cast<int>(plan.n_features);
  int* const order = plan.order + blockIdx.x * plan.n_features;
  for (int item = blockIdx.x; item < level.n_items; item += gridDim.x) {
    if (level.state[item] != OPEN) continue;
    const int begin = level.begin[item], end = level.end[item];
    double mean[OWN];
    load_columns(level.mean + item * static_cast<i64>(WIDTH), mean);
    int n_drawn = 0;
    bool found = false;
    for (; n_drawn < p && !found; ++n_drawn) {
      __syncthreads();
      if (threadIdx.x == 0) shared_feature = draw(order, level.seed[item], n_drawn, p);
      __syncthreads();
      const int feature = shared_feature;
      if (n_drawn < plan.max_features) continue;
      const int* const list = list_of(plan, level, feature);
      Missing missing;
      find_missing(plan, list, feature, begin, end, missing);
      if (missing.first == begin) continue;
      const bool several =
          value_at(plan, list[begin], feature) < value_at(plan, list[missing.first - 1], feature);
      if (!several && !missing.any) continue;
      sum_missing(plan, level, list, end, mean, missing);
      double most = -1.0;
      Swept left{};
      sweep(plan, level, list, feature, item, begin, end, mean, missing, norms, left,
            [&most](int, double gain, double other, double) {
              most = fmax(most, fmax(gain, other));
            });
      most = most_of_warp(most);
      if (most < 0.0) continue;
      found = true;
      const double least = least_equal(most, level.noise[item]);
      Taken taken{{-1, -1}, {0.0, 0.0}, {0.0, 0.0}};
      left = Swept{};
      sweep(plan, level, list, feature, item, begin, end, mean, missing, norms, left,
            [&taken, least](int at, double gain, double other, double left_weight) {
              take_first(taken, 0, at, gain, least, left_weight);
              take_first(taken, 1, at, other, least, left_weight);
            });
      if (threadIdx.x == 0) {
        const int s = taken.cut[0] >= 0 ? 0 : 1;
        write_cut(plan, level, item, feature, taken.cut[s], s, taken.weight[s], taken.gain[s]);
      }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      put_back(order, level.seed[item], n_drawn, p);
      level.state[item] = found ? FOUND : LEAF;
    }
    __syncthreads();
  }
}

// Finds the split of each node from its chunks; one warp per node.
KERNEL(32, 8) finish_nodes(RECORD(Plan) plan, RECORD(Level) level) {
  for (int item = blockIdx.x; item < level.n_items; item += gridDim.x) {
    const int state = level.state[item];
    if (state == LEAF && lane_of() == 0) level.n_left[item] = 0;
    if (state != CHOSEN) continue;
    const int first = level.first_unit[item], last = level.first_unit[item + 1];
    u32 best[2];
    for (int s = 0; s < 2; ++s) {
      best[s] = ~0u;
      for (int unit = first + lane_of(); unit < last; unit += 32) {
        if (level.cut[2 * unit + s] >= 0) best[s] = min(best[s], static_cast<u32>(unit));
      }
      best[s] = least_of_warp(best[s]);
    }
    __syncwarp();
    if (lane_of() > 0) continue;
    const int s = best[0] != ~0u ? 0 : 1;
    const i64 at = 2 * static_cast<i64>(best[s]) + s;
    const int feature = level.drawn[item * plan.max_features + level.feature[item]];
    write_cut(plan, level, item, feature, level.cut[at], s, level.cut_weight[at],
              level.cut_gain[at]);
  }
}
