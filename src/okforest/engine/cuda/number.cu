// The arrays of grown trees: nodes are numbered by level, from left to right.

// Lists the nodes of a tree in that order, by one block, and the left child of each.
KERNEL(1024, 1) number_nodes(RECORD(Plan) plan, int n_trees) {
  __shared__ int before[32];
  const int tree = blockIdx.x;
  int* const list = plan.list + 2 * plan.first[tree];
  int* const left = plan.left + 2 * plan.first[tree];
  if (threadIdx.x == 0) list[0] = plan.root[tree];
  __syncthreads();
  int begin = 0, end = 1;
  while (begin < end) {
    int next = end;
    for (int tile = begin; tile < end; tile += 1024) {
      const int i = tile + threadIdx.x;
      const int node = i < end ? list[i] : -1;
      const u32 splits = __ballot_sync(~0u, node >= 0);
      if (lane_of() == 0) before[warp_of()] = __popc(splits);
      __syncthreads();
      int place = __popc(splits & ((1u << lane_of()) - 1)), total = 0;
      for (int w = 0; w < 32; ++w) {
        if (w < warp_of()) place += before[w];
        total += before[w];
      }
      if (i < end) left[i] = node >= 0 ? next + 2 * place : -1;
      if (node >= 0) {
        list[next + 2 * place] = plan.child[2 * static_cast<i64>(node)];
        list[next + 2 * place + 1] = plan.child[2 * static_cast<i64>(node) + 1];
      }
      next += 2 * total;
      __syncthreads();
    }
    begin = end;
    end = next;
  }
  if (threadIdx.x == 0) plan.n_nodes[tree] = end;
}

// The arrays of okforest.engine.Trees, all trees one after the other.
struct Arrays {
  int *feature, *left, *begin, *end;
  double *threshold, *weight, *variance;
  signed char* missing_left;
};

KERNEL(THREADS, 4) write_trees(RECORD(Plan) plan, RECORD(Arrays) out, int n_trees) {
  const i64 total = plan.node_offsets[n_trees];
  for (i64 k = blockIdx.x * static_cast<i64>(THREADS) + threadIdx.x; k < total;
       k += static_cast<i64>(gridDim.x) * THREADS) {
    int tree = 0, above = n_trees;
    while (above - tree > 1) {
      const int half = (tree + above) / 2;
      (plan.node_offsets[half] <= k ? tree : above) = half;
    }
    const int first = static_cast<int>(plan.first[tree]);
    const i64 place = 2 * plan.first[tree] + k - plan.node_offsets[tree];
    const int node = plan.list[place];
    const bool split = node >= 0;
    const int begin = split ? plan.split_begin[node] : ~node;
    const int end = split ? plan.split_end[node] : plan.leaf_end[begin];
    const bool single = end - begin == 1;
    double weight = split ? plan.split_weight[node] : plan.leaf_weight[begin];
    if (single) weight = weight_at(plan, tree, plan.members[begin]);
    const double variance = split ? plan.split_variance[node] : plan.leaf_variance[begin];
    out.left[k] = plan.left[place];
    out.feature[k] = split ? plan.feature[node] : -1;
    out.threshold[k] = split ? plan.threshold[node] : 0.0;
    out.missing_left[k] = split ? plan.missing_left[node] : 0;
    out.begin[k] = begin - first;
    out.end[k] = end - first;
    out.weight[k] = weight * plan.weight_unit;
    out.variance[k] = single ? 0.0 : variance * plan.variance_unit;
  }
}
