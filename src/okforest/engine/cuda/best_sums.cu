// Sums over the rows of nodes and of their chunks, for best splits.

// The sums of the outputs of a chunk, in nodes with several; one team per chunk.
KERNEL(TEAM_THREADS, 1) sum_node_chunks(RECORD(Plan) plan, RECORD(Level) level) {
  const int chunk = blockIdx.x;
  const int item = find_last(level.first_many, static_cast<int>(level.n_items), chunk);
  const Place place = place_of(level, item, chunk - level.first_many[item]);
  const int* const list = list_of(plan, level, static_cast<int>(plan.n_features));
  const double zero[OWN] = {};
  double sum[OWN] = {};
  add_list(plan, level, list, place.from, place.to, zero, sum);
  store_columns(level.chunk_sum + chunk * static_cast<i64>(WIDTH), sum);
  double weight = 0.0, count = 0.0, scale = 0.0;
  add_weights(plan, level, list, place.from, place.to, weight, count, scale);
  if (threadIdx.x > 0) return;
  level.chunk_weight[chunk] = weight;
  level.chunk_count[chunk] = count;
  level.chunk_scale[chunk] = scale;
}

// Mean, variance and noise of each node, and whether it may be split; one team per node.
KERNEL(TEAM_THREADS, 1) measure_nodes(RECORD(Plan) plan, RECORD(Level) level) {
  __shared__ double scratch[TEAM];
  const int* const list = list_of(plan, level, static_cast<int>(plan.n_features));
  for (int item = blockIdx.x; item < level.n_items; item += gridDim.x) {
    const int begin = level.begin[item], end = level.end[item];
    double weight = 0.0, count = 0.0, scale = 0.0, sum[OWN] = {}, mean[OWN] = {};
    if (end - begin > CHUNK) {
      const int first = level.first_many[item], last = level.first_many[item + 1];
#pragma unroll 4
      for (int c = first; c < last; ++c) {
        double x[OWN];
        load_columns(level.chunk_sum + c * static_cast<i64>(WIDTH), x);
#pragma unroll
        for (int v = 0; v < OWN; ++v) sum[v] += x[v];
      }
      for (int c = first + lane_of(); c < last; c += 32) {
        weight += level.chunk_weight[c];
        count += level.chunk_count[c];
        scale += level.chunk_scale[c];
      }
      weight = sum_of_warp(weight);
      count = sum_of_warp(count);
      scale = sum_of_warp(scale);
    } else {
      add_weights(plan, level, list, begin, end, weight, count, scale);
      add_list(plan, level, list, begin, end, mean, sum);
    }
    double square = 0.0;
#pragma unroll
    for (int v = 0; v < OWN; ++v) {
      square += sum[v] * sum[v];
      mean[v] = sum[v] / weight;
    }
    double variance = scale - sum_of_block(square, scratch) / weight;
    if (variance <= 1e-6 * scale && scale > 0.0) {
      // Most digits are lost by cancellation: sum the squares around the mean instead.
      double spread = 0.0;
#pragma unroll 1
      for (int at = begin; at < end; ++at) {
        double x[OWN], own = 0.0;
        load_columns(level.phi + list[at] * static_cast<i64>(WIDTH), x);
#pragma unroll
        for (int v = 0; v < OWN; ++v) own += (x[v] - mean[v]) * (x[v] - mean[v]);
        spread += weight_at(plan, 0, list[at]) * own;
      }
      variance = sum_of_block(spread, scratch);
    }
    if (end - begin == 1) variance = 0.0;
    const bool open =
        end - begin > 1 && may_split(plan, static_cast<int>(level.depth), count, variance, scale);
    store_columns(level.mean + item * static_cast<i64>(WIDTH), mean);
    if (threadIdx.x == 0) {
      level.weight[item] = weight;
      level.count[item] = count;
      level.variance[item] = variance;
      level.noise[item] = fmax(NOISE * variance, ROUNDING * sqrt(fmax(variance * scale, 0.0)));
      level.state[item] = open ? OPEN : LEAF;
    }
    __syncthreads();
  }
}

// Draws the features of the nodes that may be split; one warp per node.
KERNEL(32, 8) draw_for_nodes(RECORD(Plan) plan, RECORD(Level) level) {
  const int n = static_cast<int>(plan.max_features), p = static_cast<int>(plan.n_features);
  int* const order = plan.order + blockIdx.x * plan.n_features;
  for (int item = blockIdx.x; item < level.n_items; item += gridDim.x) {
    if (level.state[item] == LEAF) continue;
    int* const drawn = level.drawn + item * static_cast<i64>(n);
    const u64 seed = level.seed[item];
    if (plan.natural) {
      for (int k = lane_of(); k < n; k += 32) drawn[k] = k;
    } else if (n <= 32) {
      const int feature = draw_by_warp(seed, n, p);
      if (lane_of() < n) drawn[lane_of()] = feature;
    } else if (lane_of() == 0) {
      for (int k = 0; k < n; ++k) drawn[k] = draw(order, seed, k, p);
      put_back(order, seed, n, p);
    }
    __syncwarp();
  }
}

// The sums of a chunk around its node's mean, in the order of each feature drawn; one team per
// chunk and feature.
KERNEL(TEAM_THREADS, TEAM_BLOCKS) sum_feature_chunks(RECORD(Plan) plan, RECORD(Level) level) {
  const int n_cuts = static_cast<int>(plan.max_features);
  const int chunk = blockIdx.x / n_cuts, k = blockIdx.x % n_cuts;
  const int item = find_last(level.first_many, static_cast<int>(level.n_items), chunk);
  if (level.state[item] == LEAF) return;
  const Place place = place_of(level, item, chunk - level.first_many[item]);
  const int* const list = list_of(plan, level, level.drawn[item * static_cast<i64>(n_cuts) + k]);
  double mean[OWN], sum[OWN] = {}, weight = 0.0, count = 0.0, scale = 0.0;
  load_columns(level.mean + item * static_cast<i64>(WIDTH), mean);
  add_list(plan, level, list, place.from, place.to, mean, sum);
  add_weights(plan, level, list, place.from, place.to, weight, count, scale);
  const i64 at = chunk * static_cast<i64>(n_cuts) + k;
  store_columns(level.part + at * WIDTH, sum);
  if (threadIdx.x == 0) {
    level.part_weight[at] = weight;
    level.part_count[at] = count;
  }
}

// Replaces these sums by those of the chunks before, and sums rows without a value; one team per
// node with several chunks, and feature.
KERNEL(TEAM_THREADS, 1) add_feature_chunks(RECORD(Plan) plan, RECORD(Level) level) {
  const i64 n_cuts = plan.max_features;
  const int k = static_cast<int>(blockIdx.x % n_cuts);
  const int number = static_cast<int>(blockIdx.x / n_cuts);
  // The first node of this number: `many` counts the nodes with several chunks up to a node.
  int low = -1, high = static_cast<int>(level.n_items) - 1;
  while (high - low > 1) {
    const int half = low + (high - low) / 2;
    if (level.many[half] > number) {
      high = half;
    } else {
      low = half;
    }
  }
  const int item = high, begin = level.begin[item], end = level.end[item];
  if (level.state[item] == LEAF) return;
  const int feature = level.drawn[item * n_cuts + k];
  const int* const list = list_of(plan, level, feature);
  Missing missing;
  find_missing(plan, list, feature, begin, end, missing);
  const i64 first = level.first_many[item], last = level.first_many[item + 1];
  double sum[OWN] = {};
  for (i64 c = first; c < last; c += AT_ONCE) {
    double own[AT_ONCE][OWN];
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
      if (c + i < last) load_columns(level.part + ((c + i) * n_cuts + k) * WIDTH, own[i]);
    }
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
      if (c + i >= last) continue;
      store_columns(level.part + ((c + i) * n_cuts + k) * WIDTH, sum);
      const bool is_missing_chunk = begin + (c + i - first) * CHUNK >= missing.first;
#pragma unroll
      for (int v = 0; v < OWN; ++v) {
        sum[v] += own[i][v];
        if (is_missing_chunk) missing.sum[v] += own[i][v];
      }
    }
  }
  double before[2] = {}, of_missing[2] = {};  // weights and counts
  for (i64 c = first + lane_of(); warp_of() == 0 && c - lane_of() < last; c += 32) {
    const i64 at = c * n_cuts + k;
    const double own[2] = {c < last ? level.part_weight[at] : 0.0,
                           c < last ? level.part_count[at] : 0.0};
    const double up_to[2] = {before[0] + sum_before(own[0]), before[1] + sum_before(own[1])};
    if (c < last) {
      level.part_weight[at] = up_to[0] - own[0];
      level.part_count[at] = up_to[1] - own[1];
    }
    for (int s = 0; s < 2; ++s) {
      before[s] = __shfl_sync(~0u, up_to[s], 31);
      if (begin + (c - first) * CHUNK >= missing.first) of_missing[s] += own[s];
    }
  }
  if (!missing.any) return;
  // The chunk where missing values begin.
  const int middle = min(end, begin + (missing.first - begin + CHUNK - 1) / CHUNK * CHUNK);
  double mean[OWN], weight = 0.0, count = 0.0, scale = 0.0;
  load_columns(level.mean + item * static_cast<i64>(WIDTH), mean);
  add_list(plan, level, list, missing.first, middle, mean, missing.sum);
  add_weights(plan, level, list, missing.first, middle, weight, count, scale);
  const double missing_weight = sum_of_warp(of_missing[0]);
  const double missing_count = sum_of_warp(of_missing[1]);
  const i64 at = number * n_cuts + k;
  store_columns(level.missing_sum + at * WIDTH, missing.sum);
  if (threadIdx.x == 0) {
    level.missing_weight[at] = weight + missing_weight;
    level.missing_count[at] = count + missing_count;
  }
}
