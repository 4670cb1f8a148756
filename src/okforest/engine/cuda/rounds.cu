// A round of boosting: a small tree, grown best first on residuals in float64, whose leaf means are
// then subtracted from them. A step splits the node of the highest priority and evaluates its two
// children: it finds their best splits, and from these their priorities. No step waits for the
// host.
//
// The rows of all nodes are in rows[0]. Those of the nodes that are being evaluated, plan.large[1],
// have just been moved to rows[1].

#define TILE_ROWS THREADS
#define PRODUCTS (SLOTS / 8)  // of matrices, for all slots of a pass

// Every field has eight bytes; engine/cuda/layout.py reads the declaration.
struct Rounds {
  double* phi;      // n x width: the residuals, and zeros beyond their columns
  double* squares;  // per row: their squared norm
  int* state;       // number of nodes, and the node that is being split, or -1
  Item* nodes;      // by number; a left child comes before the right one
  int* feature;     // per node: its best split
  double* threshold;
  int* missing_left;
  int* middle;     // where the right side begins
  int* left;       // the left child, or -1 if the node has not been split
  double* weight;  // per node
  double* variance;
  double* priority;   // -1 if there is no split, or if it was made
  double* sums;       // per node: width
  int* before;        // by the first position of a chunk: rows on the left in the chunks before it
  double* item_sums;  // of the two nodes that are evaluated: n_slots x width
  double* item_rows;  // n_slots
  double* item_weight;
  double* item_count;
  double* item_scale;      // sum of w |phi|^2
  double* spread;          // per chunk: sum of w |phi - mean|^2, where it is needed
  int* leaf;               // per node: its number among the leaves
  double* means;           // per leaf: width
  unsigned short* places;  // per row: its leaf
  i64 n_parts;             // of the rows of a chunk, with sums of their own
  i64 by_gain;             // whether gains are priorities, or variances
  u64 seed;
  double learning_rate;
};

// Lists the chunks of the nodes to be evaluated, and draws their features; by one block.
__device__ inline void begin_items(const Plan& plan, int n_items) {
  int first = 0;
  for (int i = 0; i < 2; ++i) {
    const Item* const item = plan.large[1] + i;
    const int n = i < n_items ? n_chunks_of(item->end - item->begin) : 0;
    if (threadIdx.x == 0) plan.first_chunk[i] = first;
    for (int c = threadIdx.x; c < n; c += THREADS) plan.chunk_node[first + c] = i;
    first += n;
  }
  if (threadIdx.x == 0) plan.first_chunk[2] = first;
  if (warp_of() < n_items) {
    draw_for(plan, warp_of(), plan.large[1][warp_of()].seed,
             plan.order + static_cast<i64>(warp_of()) * plan.n_features);
  }
}

__device__ inline void add_node(const Plan& plan, const Rounds& rounds, Item node, int id,
                                int item) {
  node.parent = id;  // a node's own number: there is no other use
  rounds.nodes[id] = node;
  rounds.left[id] = -1;
  rounds.priority[id] = -1.0;
  plan.large[1][item] = node;
}

// Starts tree number `tree` with its root.
KERNEL(THREADS, 1) begin_tree(RECORD(Plan) plan, RECORD(Rounds) rounds, int tree, int n_rows) {
  if (threadIdx.x == 0) {
    const Item root{0, n_rows, 0, 0, 0, 0, derive(rounds.seed, static_cast<u64>(tree))};
    add_node(plan, rounds, root, 0, 0);
    rounds.state[0] = 1;
  }
  __syncthreads();
  begin_items(plan, 1);
}

// Splits the node of the highest priority, the first among equals.
KERNEL(THREADS, 1) pick_node(RECORD(Plan) plan, RECORD(Rounds) rounds) {
  __shared__ int picked;
  const int n_nodes = rounds.state[0];
  if (warp_of() == 0) {
    double most = -1.0;
    int best = n_nodes;
    for (int id = lane_of(); id < n_nodes; id += 32) {
      if (rounds.priority[id] > most) most = rounds.priority[id], best = id;
    }
    for (int d = 16; d > 0; d /= 2) {
      const double other = __shfl_xor_sync(~0u, most, d);
      const int id = __shfl_xor_sync(~0u, best, d);
      if (other > most || (other == most && id < best)) most = other, best = id;
    }
    if (lane_of() == 0) picked = most < 0.0 ? -1 : best;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    rounds.state[1] = picked;
    if (picked >= 0) {
      const Item node = rounds.nodes[picked];
      const int middle = rounds.middle[picked];
      rounds.left[picked] = n_nodes;
      rounds.priority[picked] = -1.0;
      rounds.state[0] = n_nodes + 2;
      add_node(plan, rounds, child_of(node, middle, false), n_nodes, 0);
      add_node(plan, rounds, child_of(node, middle, true), n_nodes + 1, 1);
    }
  }
  __syncthreads();
  begin_items(plan, picked >= 0 ? 2 : 0);
}

__device__ inline bool goes_left(const Rounds& rounds, int id, Value x) {
  return is_missing(x) ? rounds.missing_left[id] != 0 : x <= rounds.threshold[id];
}

// Divides the rows of the node that is being split, keeping their order.
KERNEL(THREADS, 4) divide_rows_of_node(RECORD(Plan) plan, RECORD(Rounds) rounds) {
  __shared__ int before[WARPS];
  const int id = rounds.state[1];
  if (id < 0) return;
  const Item node = rounds.nodes[id];
  const int size = chunk_size(node.end - node.begin);
  const i64 first = node.begin + blockIdx.x * static_cast<i64>(size);
  if (first >= node.end) return;
  const int begin = static_cast<int>(first), end = min(node.end, begin + size);
  const int feature = rounds.feature[id], middle = rounds.middle[id];
  int done = rounds.before[begin];
  for (int tile = begin; tile < end; tile += THREADS) {
    const int i = tile + threadIdx.x;
    __syncthreads();
    bool left = false;
    int row = 0;
    if (i < end) {
      row = plan.rows[0][i];
      left = goes_left(rounds, id, static_cast<Value>(plan.X[row * plan.n_features + feature]));
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
    if (i >= end) continue;
    plan.rows[1][left ? node.begin + place : middle + (i - node.begin) - place] = row;
  }
}

// Numbers the leaves by their rows, and computes what each of them predicts; by one block.
KERNEL(THREADS, 1) finish_tree(RECORD(Plan) plan, RECORD(Rounds) rounds) {
  const int n_nodes = rounds.state[0];
  for (int id = threadIdx.x; id < n_nodes; id += THREADS) {
    int number = 0;
    for (int other = 0; other < n_nodes; ++other) {
      number += rounds.left[other] < 0 && rounds.nodes[other].begin < rounds.nodes[id].begin;
    }
    rounds.leaf[id] = number;
  }
  __syncthreads();
  for (int id = warp_of(); id < n_nodes; id += WARPS) {
    if (rounds.left[id] >= 0) continue;
    for (i64 column = lane_of(); column < plan.width; column += 32) {
      rounds.means[rounds.leaf[id] * plan.width + column] =
          rounds.learning_rate * (rounds.sums[id * plan.width + column] / rounds.weight[id]);
    }
  }
}

// Follows every row to its leaf, and subtracts the leaf's mean. A warp takes 32 rows.
KERNEL(THREADS, 4) subtract_means(RECORD(Plan) plan, RECORD(Rounds) rounds) {
  const i64 first = (blockIdx.x * static_cast<i64>(WARPS) + warp_of()) * 32;
  if (first >= plan.n_rows) return;
  const int n = static_cast<int>(min(static_cast<i64>(32), plan.n_rows - first));
  int place = 0;
  if (lane_of() < n) {
    const Input* const x = plan.X + (first + lane_of()) * plan.n_features;
    int id = 0;
    while (rounds.left[id] >= 0) {
      const bool left = goes_left(rounds, id, static_cast<Value>(x[rounds.feature[id]]));
      id = rounds.left[id] + (left ? 0 : 1);
    }
    place = rounds.leaf[id];
    rounds.places[first + lane_of()] = static_cast<unsigned short>(place);
  }
  for (int k = 0; k < n; ++k) {
    const double* const mean = rounds.means + __shfl_sync(~0u, place, k) * plan.width;
    double* const phi = rounds.phi + (first + k) * plan.width;
    double square = 0.0;
#pragma unroll 4
    for (i64 column = lane_of(); column < plan.width; column += 32) {
      const double x = phi[column] - mean[column];
      phi[column] = x;
      square += x * x;
    }
    square = sum_of_warp(square);
    if (lane_of() == 0) rounds.squares[first + k] = square;
  }
}
