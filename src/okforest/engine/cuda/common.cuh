// What all kernels share: the plan, random numbers, sides of cuts, and the record of a grown tree.

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#if INPUT_BYTES == 8
typedef double Input;
typedef double Value;  // what an input is read as
typedef u64 Key;       // sorts like a value
#else
#if INPUT_BYTES == 4
typedef float Input;
#else
typedef unsigned char Input;
#endif
typedef float Value;
typedef u32 Key;
#endif

// INPUT_BYTES and the constants of engine/cuda/layout.py are defined when the kernels are compiled.
#define WARPS (THREADS / 32)

#define TIE 1e-9
#define NOISE 1e-12
#define ROUNDING (64 * 2.220446049250313e-16)
#define PURE 1e-14

// A node to be grown. Positions count over all trees that grow at once.
struct Item {
  int begin, end;  // range of its rows
  int tree, depth;
  int parent;  // 2 * the parent's split, + 1 on the right; -1 in a root
  int padding;
  u64 seed;
};

// Every field has eight bytes; engine/cuda/layout.py reads the declaration.
struct Plan {
  const Input* X;         // n x n_features
  const u32* phi;         // n x width: pairs of float16 whose sum is an output around the mean
  const u32* weighted;    // the same times the row's weight
  const double* squares;  // per row: squared norm around the mean, and around zero
  const double* weight;   // per row, of one tree or of all
  const double* count;
  const i64* first;  // first position of each tree
  int* rows[2];      // of large nodes, level by level
  int* members;      // of all others
  int* order;        // a permutation of the features for each worker
  // By the position where the right side of a split begins:
  int* feature;
  double* threshold;
  signed char* missing_left;
  int* split_begin;
  int* split_end;
  double* split_weight;
  double* split_variance;
  int* child;  // two: a split, or ~ the begin of a leaf
  // By the position where a leaf begins:
  int* leaf_end;
  double* leaf_weight;
  double* leaf_variance;
  int* root;  // of each tree, as in child
  // Lists of nodes, and their lengths: large (of two levels), middle, small.
  Item* large[2];
  Item* middle;
  Item* small;
  int* n_items;  // large, large of the next level, middle, small, to be scored exactly
  // Of each large node:
  int* drawn;  // max_features
  Key* low;    // max_features
  Key* high;
  int* missing;      // max_features: whether a value is missing
  int* first_chunk;  // n + 1
  int* taken;        // slot of its split; -1: a leaf, -2: a split of another feature
  int* middle_row;   // position where its right side begins
  int* inexact;
  Value* values;  // by position: n_kept values of the features drawn
  // Of each chunk of a large node:
  int* chunk_node;
  int* chunk_order;  // which chunk a block takes; or null: as they are numbered
  int* chunk_left;   // rows on the left of its node in the chunks before it
  double* partial;   // n_slots x width
  int* slot_rows;    // n_slots
  double* slot_weight;
  double* slot_count;
  double* scale;  // two: as squares
  // Numbering:
  int* list;
  int* left;
  i64* n_nodes;
  const i64* node_offsets;
  i64 n_rows, n_features, width, n_trees;
  i64 max_features, natural, any_missing, n_slots, n_passes, n_kept;
  i64 max_depth, stop_when_pure, plain, bootstrap, weight_stride;
  double min_split, min_both, min_leaf, min_gain;  // limits, less a tolerance; gain of all weights
  double weight_unit, variance_unit;               // of the trees' arrays
};

// What a plan says about all nodes may be known when the kernels are compiled: code that never runs
// then takes no place in the instruction cache.
#ifndef PLAIN
#define PLAIN plan.plain
#define ANY_MISSING plan.any_missing
#define NATURAL plan.natural
#define BOOTSTRAP plan.bootstrap
#define FEW (plan.n_kept > 0)  // a thread keeps the values of all candidates
#define N_PASSES plan.n_passes
#endif

__device__ inline int lane_of() { return threadIdx.x & 31; }
__device__ inline int warp_of() { return threadIdx.x >> 5; }
__device__ inline int n_threads() { return blockDim.x; }
__device__ inline int n_warps() { return blockDim.x >> 5; }

// ---- random numbers: see native/core/random.hpp ----

#define GAMMA 0x9e3779b97f4a7c15ULL

__device__ inline u64 mix(u64 z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

__device__ inline u64 derive(u64 seed, u64 key) { return mix(seed ^ mix(key + GAMMA)); }

// Number n, from 0, of the stream of a seed.
__device__ inline u64 number(u64 seed, u64 n) { return mix(seed + (n + 1) * GAMMA); }

__device__ inline double uniform(u64 bits) {
  return static_cast<double>(bits >> 11) * 1.1102230246251565e-16;  // 2^-53
}

// Without fused multiply-adds, as on the CPU.
__device__ inline double uniform_between(double low, double high, double u) {
  const double x = __dadd_rn(__dmul_rn(1.0 - u, low), __dmul_rn(u, high));
  return x >= low && x < high ? x : low;
}

// The features in a random order: draw number k, and the reverse of the first k draws.
__device__ inline int drawn_place(u64 seed, int k, int n) {
  return k + static_cast<int>(((number(seed, k) >> 32) * static_cast<u32>(n - k)) >> 32);
}

// Not inlined: code that is rarely run should not fill the instruction cache.
__device__ __noinline__ int draw(int* order, u64 seed, int k, int n) {
  const int place = drawn_place(seed, k, n);
  const int feature = order[place];
  order[place] = order[k];
  order[k] = feature;
  return feature;
}

__device__ __noinline__ void put_back(int* order, u64 seed, int k, int n) {
#pragma unroll 1
  while (k-- > 0) {
    const int place = drawn_place(seed, k, n);
    const int feature = order[k];
    order[k] = order[place];
    order[place] = feature;
  }
}

// The first n <= 32 features in that order, one per lane, without the permutation. Draw k swaps the
// features at positions k and place k. So it takes feature place k, unless an earlier draw had the
// same place: the last such draw j has put there what was at position j.
__device__ inline int draw_by_warp(u64 seed, int n, int n_features) {
  const int lane = lane_of(), place = drawn_place(seed, lane, n_features);
  int moved = lane;  // what is at the lane's own position when its turn comes
  u32 close = __ballot_sync(~0u, lane < n && place < n && place != lane);
#pragma unroll 1
  for (; close != 0; close &= close - 1) {
    const int i = __ffs(close) - 1;
    const int target = __shfl_sync(~0u, place, i), put = __shfl_sync(~0u, moved, i);
    if (lane == target) moved = put;
  }
  const u32 same = __match_any_sync(~0u, place) & ((1u << lane) - 1);
  const int other = __shfl_sync(~0u, moved, same ? 31 - __clz(same) : 0);
  return same ? other : place;
}

// ---- values and cuts ----

__device__ inline bool is_missing(Value x) { return x != x; }

__device__ inline Key key_of(Value x) {
#if INPUT_BYTES == 8
  const u64 bits = static_cast<u64>(__double_as_longlong(x));
  return bits >> 63 ? ~bits : bits | 1ULL << 63;
#else
  const u32 bits = __float_as_uint(x);
  return bits >> 31 ? ~bits : bits | 1u << 31;
#endif
}

__device__ inline double value_of(Key key) {
#if INPUT_BYTES == 8
  return __longlong_as_double(static_cast<i64>(key >> 63 ? key & ~(1ULL << 63) : ~key));
#else
  return __uint_as_float(key >> 31 ? key & ~(1u << 31) : ~key);
#endif
}

#define NO_LOW (~static_cast<Key>(0))
#define NO_HIGH (static_cast<Key>(0))

__device__ inline u64 least_of_warp(u64 x) {
  for (int d = 16; d > 0; d /= 2) {
    const u64 y = __shfl_xor_sync(~0u, x, d);
    x = y < x ? y : x;
  }
  return x;
}

__device__ inline u64 most_of_warp(u64 x) { return ~least_of_warp(~x); }

__device__ inline double sum_of_warp(double x) {
  for (int d = 16; d > 0; d /= 2) x += __shfl_xor_sync(~0u, x, d);
  return x;
}

// The largest of numbers >= 0, or -1 if all are negative: such numbers sort like their bits.
__device__ inline double most_of_warp(double x) {
  const u64 bits = x < 0.0 ? 0 : static_cast<u64>(__double_as_longlong(x)) + 1;
  const u32 high = most_of_warp(static_cast<u32>(bits >> 32));
  const u32 low = most_of_warp(bits >> 32 == high ? static_cast<u32>(bits) : 0u);
  const u64 most = static_cast<u64>(high) << 32 | low;
  return most == 0 ? -1.0 : __longlong_as_double(static_cast<i64>(most - 1));
}

// A random cut of a feature, within the range of its values in a node.
struct Cut {
  double threshold;
  Value rounded;  // a value is at most the threshold if and only if it is at most this
  double draw;    // decides the side of missing values
  bool possible;
};

#define INFINITE __longlong_as_double(0x7ff0000000000000LL)

__device__ inline Cut make_cut(u64 seed, int feature, Key low, Key high, bool missing) {
  const u64 cuts = derive(seed, 3) + static_cast<u64>(feature) * (4096 * GAMMA);
  Cut cut;
  cut.possible = low < high || (low == high && missing);
  if (low < high && value_of(low) == value_of(high)) cut.possible = missing;  // both zeros
  const double a = value_of(low), b = value_of(high);
  cut.threshold = low < high && a < b ? uniform_between(a, b, uniform(number(cuts, 0))) : INFINITE;
  cut.draw = uniform(number(cuts, 1));
#if INPUT_BYTES == 8
  cut.rounded = cut.threshold;
#else
  cut.rounded = __double2float_rd(cut.threshold);
#endif
  return cut;
}

// Whether missing values go left, with probability proportional to the present weight there.
__device__ inline bool missing_go_left(double draw, double present, double on_left, int n_left,
                                       int n_right) {
  return n_left == 0 || (n_right > 0 && draw * present < on_left);
}

__device__ inline bool goes_left(Value x, Value rounded, bool missing_left) {
  return is_missing(x) ? missing_left : x <= rounded;
}

// ---- gains: see native/core/gain.hpp ----

__device__ inline double gain_of(const Plan& plan, double norm, double weight, double count,
                                 double left_weight, double left_count) {
  if (left_count < plan.min_leaf || count - left_count < plan.min_leaf) return -1.0;
  return fmax(norm, 0.0) * weight / (left_weight * (weight - left_weight));
}

__device__ inline double least_equal(double largest, double noise) {
  return fmax(0.0, largest * (1.0 - TIE) - noise);
}

__device__ inline bool is_enough(const Plan& plan, double gain, double noise) {
  return gain * (1.0 + TIE) + noise >= plan.min_gain;
}

__device__ inline bool may_split(const Plan& plan, int depth, double count, double variance,
                                 double scale) {
  if (depth >= plan.max_depth || count < plan.min_split || count < plan.min_both) return false;
  return !plan.stop_when_pure || variance > PURE * scale;
}

// ---- outputs ----

__device__ inline float output_of(u32 pair) {
  return float_of(pair & 0xffff) + float_of(pair >> 16);
}

__device__ inline double weight_at(const Plan& plan, int tree, int row) {
  return PLAIN ? 1.0 : plan.weight[tree * plan.weight_stride + row];
}

__device__ inline double count_at(const Plan& plan, int tree, int row) {
  return PLAIN ? 1.0 : plan.count[tree * plan.weight_stride + row];
}

// ---- the record ----

__device__ inline void link(const Plan& plan, int tree, int parent, int child) {
  if (parent < 0) {
    plan.root[tree] = child;
  } else {
    plan.child[parent] = child;
  }
}

__device__ inline void write_leaf(const Plan& plan, const Item& node, double weight,
                                  double variance) {
  plan.leaf_end[node.begin] = node.end;
  plan.leaf_weight[node.begin] = weight;
  plan.leaf_variance[node.begin] = variance;
  link(plan, node.tree, node.parent, ~node.begin);
}

struct Split {
  int feature;
  double threshold;
  bool missing_left;
  int middle;  // where the right side begins
};

__device__ inline void write_split(const Plan& plan, const Item& node, const Split& split,
                                   double weight, double variance) {
  plan.feature[split.middle] = split.feature;
  plan.threshold[split.middle] = split.threshold;
  plan.missing_left[split.middle] = split.missing_left;
  plan.split_begin[split.middle] = node.begin;
  plan.split_end[split.middle] = node.end;
  plan.split_weight[split.middle] = weight;
  plan.split_variance[split.middle] = variance;
  link(plan, node.tree, node.parent, split.middle);
}

__device__ inline Item child_of(const Item& node, int middle, bool right) {
  return {right ? middle : node.begin,
          right ? node.end : middle,
          node.tree,
          node.depth + 1,
          2 * middle + right,
          0,
          derive(node.seed, right ? 2 : 1)};
}
