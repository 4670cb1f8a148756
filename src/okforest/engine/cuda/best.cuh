// Best splits: every cut of the features drawn, level by level, for one tree at a time. The rows of
// a tree are listed in the order of each feature; in every list, the rows of a node are contiguous.
// A team of warps takes a chunk of a node's rows, and adds them to one side one by one. Outputs and
// sums are in float64.

#define TEAM_THREADS (32 * TEAM)
#define WIDTH (TEAM_THREADS * OWN)  // columns of the outputs; a thread has OWN of them

#if OWN >= 8
#define AT_ONCE 2  // rows whose outputs are read at once
#elif OWN >= 4
#define AT_ONCE 4
#else
#define AT_ONCE 8
#endif

#define LEAF 0
#define CHOSEN 1  // by the features drawn
#define FOUND 2   // by further features
#define OPEN 3    // not yet

// A level of a tree. Every field has eight bytes; engine/cuda/layout.py reads the declaration.
struct Level {
  const double* phi;     // n_rows x WIDTH
  const double* square;  // per row: squared norm
  const int* list;       // n_features + 1 lists of n positions; the last one in the order of rows
  int* next_list;        // the same for the next level
  int* node_at;          // per position: its node, or -1
  int* next_node_at;
  signed char* on_left;  // per row
  int* lefts;            // per list and tile of positions: rows on the left, in tiles before it
  // Nodes of the level, in the order of their rows:
  const int *begin, *end;
  const u64* seed;
  const int* first_unit;  // n + 1: chunks of each node
  const int* first_many;  // n + 1: chunks of nodes with several
  const int* many;        // number among these nodes
  double* mean;           // WIDTH
  double *weight, *count, *variance, *noise;
  int* state;
  int* drawn;  // max_features
  // Chunks of nodes with several:
  double* chunk_sum;                                 // WIDTH: of w phi
  double *chunk_weight, *chunk_count, *chunk_scale;  // of the rows; scale: sum of w |phi|^2
  double* part;  // max_features x WIDTH: sum of w (phi - mean), then that of the chunks before
  double *part_weight, *part_count;
  // Nodes with several chunks, and features drawn: rows without a value.
  double* missing_sum;  // WIDTH
  double *missing_weight, *missing_count;
  // Chunks:
  double* most;  // max_features: the largest gain
  int* cut;      // two: first cut that is good enough, with missing values on the right or left
  double *cut_weight, *cut_gain;
  // The split of a node:
  int* feature;
  double* least;  // the least gain that is good enough
  double* threshold;
  int* missing_left;
  int* middle;             // where the right side begins
  int* n_left;             // zero in a leaf
  const int* rank;         // number of splits before
  const int* left_before;  // rows on the left in the nodes before
  // Nodes of the next level:
  int *next_begin, *next_end;
  u64* next_seed;
  i64 n, n_items, depth;
};

__device__ inline const int* list_of(const Plan& plan, const Level& level, int feature) {
  return level.list + static_cast<i64>(feature) * level.n;
}

// The last of ascending numbers, from first[0] = 0 on, that is at most x.
__device__ inline int find_last(const int* first, int n, int x) {
  int low = 0, high = n;
  while (high - low > 1) {
    const int half = low + (high - low) / 2;
    if (first[half] <= x) {
      low = half;
    } else {
      high = half;
    }
  }
  return low;
}

// A node, as the threads of a team see it.
struct Place {
  int item, begin, end;
  int from, to;  // the chunk
  bool several;
  i64 many;  // number of the chunk among those of nodes with several
};

__device__ inline Place place_of(const Level& level, int item, int chunk) {
  Place place;
  place.item = item;
  place.begin = level.begin[item];
  place.end = level.end[item];
  place.from = place.begin + chunk * CHUNK;
  place.to = min(place.end, place.from + CHUNK);
  place.several = place.end - place.begin > CHUNK;
  place.many = level.first_many[item] + chunk;
  return place;
}

__device__ inline void load_columns(const double* from, double x[OWN]) {
  from += threadIdx.x * OWN;
#if OWN == 1
  x[0] = from[0];
#else
#pragma unroll
  for (int v = 0; v < OWN; v += 2) {
    const double2 two = *reinterpret_cast<const double2*>(from + v);
    x[v] = two.x;
    x[v + 1] = two.y;
  }
#endif
}

__device__ inline void store_columns(double* to, const double x[OWN]) {
  to += threadIdx.x * OWN;
#pragma unroll
  for (int v = 0; v < OWN; ++v) to[v] = x[v];
}

__device__ inline Value value_at(const Plan& plan, int row, int feature) {
  return static_cast<Value>(plan.X[row * plan.n_features + feature]);
}

// Adds w (phi - mean) of some rows of a list.
__device__ inline void add_list(const Plan& plan, const Level& level, const int* list, int from,
                                int to, const double mean[OWN], double sum[OWN]) {
#pragma unroll 1
  for (int tile = from; tile < to; tile += 32) {
    const int at = tile + lane_of(), row = list[min(at, to - 1)];
    const double weight = at < to ? weight_at(plan, 0, row) : 0.0;
#pragma unroll 1
    for (int j = 0; j < min(32, to - tile); j += AT_ONCE) {
      double x[AT_ONCE][OWN];
#pragma unroll
      for (int i = 0; i < AT_ONCE; ++i) {
        load_columns(level.phi + __shfl_sync(~0u, row, j + i) * static_cast<i64>(WIDTH), x[i]);
      }
#pragma unroll
      for (int i = 0; i < AT_ONCE; ++i) {
        const double w = __shfl_sync(~0u, weight, j + i);
#pragma unroll
        for (int v = 0; v < OWN; ++v) sum[v] += w * (x[i][v] - mean[v]);
      }
    }
  }
}

// Weight and count of some rows of a list, and their sum of w |phi|^2; by each warp.
__device__ inline void add_weights(const Plan& plan, const Level& level, const int* list, int from,
                                   int to, double& weight, double& count, double& scale) {
  double of_rows[3] = {};
  for (int at = from + lane_of(); at < to; at += 32) {
    const double w = weight_at(plan, 0, list[at]);
    of_rows[0] += w;
    of_rows[1] += count_at(plan, 0, list[at]);
    of_rows[2] += w * level.square[list[at]];
  }
  weight += sum_of_warp(of_rows[0]);
  count += sum_of_warp(of_rows[1]);
  scale += sum_of_warp(of_rows[2]);
}

// What rows without a value add to a side.
struct Missing {
  bool any;
  int first;  // position; the end of the node if there are none
  double sum[OWN], weight, count;
};

// Finds where missing values begin in a list, at the end of a node.
__device__ inline void find_missing(const Plan& plan, const int* list, int feature, int begin,
                                    int end, Missing& missing) {
  missing.any = plan.any_missing && is_missing(value_at(plan, list[end - 1], feature));
  missing.first = end;
  missing.weight = missing.count = 0.0;
#pragma unroll
  for (int v = 0; v < OWN; ++v) missing.sum[v] = 0.0;
  if (!missing.any) return;
  int low = begin - 1, high = end - 1;  // a position before, and one that is missing
  while (high - low > 1) {
    const int half = low + (high - low) / 2;
    if (is_missing(value_at(plan, list[half], feature))) {
      high = half;
    } else {
      low = half;
    }
  }
  missing.first = high;
}

__device__ inline void sum_missing(const Plan& plan, const Level& level, const int* list, int end,
                                   const double mean[OWN], Missing& missing) {
  if (!missing.any) return;
  double scale = 0.0;
  add_list(plan, level, list, missing.first, end, mean, missing.sum);
  add_weights(plan, level, list, missing.first, end, missing.weight, missing.count, scale);
}

// The left side of a cut, as rows are added to it.
struct Swept {
  double sum[OWN], weight, count;
};

// Memory of a team for norms: of 32 rows in each warp, with missing values on the right and left.
struct Norms {
  double* tile[2];   // of each warp: 32 x 33
  double* joint[2];  // TEAM x 32
};

__device__ inline Norms take_norms(const Plan& plan, Pool& pool) {
  Norms norms;
  for (int k = 0; k < 2; ++k) {
    const int some = k == 0 || plan.any_missing ? 1 : 0;
    norms.tile[k] = pool.take<double>(some * TEAM * 32 * 33) + warp_of() * (32 * 33);
    norms.joint[k] = pool.take<double>(some * TEAM * 32);
  }
  return norms;
}

// The norm that belongs to each lane's row, from what all threads of the team have in the tiles.
__device__ inline double add_norms(const double* tile, double* joint) {
  double norm = 0.0;
#pragma unroll 8
  for (int i = 0; i < 32; ++i) norm += tile[lane_of() * 33 + i];
#if TEAM > 1
  joint[warp_of() * 32 + lane_of()] = norm;
  __syncthreads();
  norm = 0.0;
  for (int w = 0; w < TEAM; ++w) norm += joint[w * 32 + lane_of()];
  __syncthreads();
#endif
  return norm;
}

// The sum of x over the lanes up to this one.
__device__ inline double sum_before(double x) {
  for (int d = 1; d < 32; d *= 2) {
    const double other = __shfl_sync(~0u, x, max(lane_of() - d, 0));
    if (lane_of() >= d) x += other;
  }
  return x;
}

// Moves the rows from..to - 1 of a list to the left side one by one, and calls
// visit(position, gain, other_gain, left_weight) for 32 of them at a time: the gains of the cut
// after the lane's position, with missing values on the right and on the left, or -1.
template <class Visit>
__device__ inline void sweep(const Plan& plan, const Level& level, const int* list, int feature,
                             int item, int from, int to, const double mean[OWN],
                             const Missing& missing, const Norms& norms, Swept& left,
                             Visit&& visit) {
  const double weight = level.weight[item], count = level.count[item];
#pragma unroll 1
  for (int tile = from; tile < to; tile += 32) {
    const int at = tile + lane_of(), row = list[min(at, to - 1)];
    const double own_weight = at < to ? weight_at(plan, 0, row) : 0.0;
    const double own_count = at < to ? count_at(plan, 0, row) : 0.0;
    const Value x = value_at(plan, row, feature);
    Value next = __shfl_sync(~0u, x, min(lane_of() + 1, 31));
    // The last row of the chunk is followed by that of the next one, if there is any.
    if (at < missing.first - 1 && (lane_of() == 31 || at == to - 1)) {
      next = value_at(plan, list[at + 1], feature);
    }
#pragma unroll 1
    for (int j = 0; j < min(32, to - tile); j += AT_ONCE) {
      double phi[AT_ONCE][OWN];
#pragma unroll
      for (int i = 0; i < AT_ONCE; ++i) {
        load_columns(level.phi + __shfl_sync(~0u, row, j + i) * static_cast<i64>(WIDTH), phi[i]);
      }
#pragma unroll
      for (int i = 0; i < AT_ONCE; ++i) {
        const double w = __shfl_sync(~0u, own_weight, j + i);
        double square = 0.0;
#pragma unroll
        for (int v = 0; v < OWN; ++v) {
          left.sum[v] += w * (phi[i][v] - mean[v]);
          square += left.sum[v] * left.sum[v];
        }
        norms.tile[0][(j + i) * 33 + lane_of()] = square;
        if (!missing.any) continue;
        square = 0.0;
#pragma unroll
        for (int v = 0; v < OWN; ++v) {
          const double d = left.sum[v] + missing.sum[v];
          square += d * d;
        }
        norms.tile[1][(j + i) * 33 + lane_of()] = square;
      }
    }
    __syncwarp();
    const double norm = add_norms(norms.tile[0], norms.joint[0]);
    const double other_norm = missing.any ? add_norms(norms.tile[1], norms.joint[1]) : 0.0;
    __syncwarp();
    const double left_weight = left.weight + sum_before(own_weight);
    const double left_count = left.count + sum_before(own_count);
    const bool inside = at < to && at < missing.first - 1 && x < next;
    const bool last = at < to && at == missing.first - 1 && missing.any;
    const double gain =
        inside || last ? gain_of(plan, norm, weight, count, left_weight, left_count) : -1.0;
    const double other_gain =
        missing.any && inside ? gain_of(plan, other_norm, weight, count,
                                        left_weight + missing.weight, left_count + missing.count)
                              : -1.0;
    visit(at, gain, other_gain, left_weight);
    left.weight = __shfl_sync(~0u, left_weight, 31);
    left.count = __shfl_sync(~0u, left_count, 31);
  }
}

// The first cuts that are good enough, with missing values on the right and on the left.
struct Taken {
  int cut[2];
  double weight[2], gain[2];
};

__device__ inline void take_first(Taken& taken, int k, int at, double gain, double least,
                                  double left_weight) {
  const u32 good = __ballot_sync(~0u, gain >= 0.0 && gain >= least);
  if (good == 0 || taken.cut[k] >= 0) return;
  const int lane = __ffs(good) - 1;
  taken.cut[k] = __shfl_sync(~0u, at, lane);
  taken.weight[k] = __shfl_sync(~0u, left_weight, lane);
  taken.gain[k] = __shfl_sync(~0u, gain, lane);
}
