// Predictions: the leaves that inputs reach, means over the members of leaves, and products of
// sparse with dense matrices. Every number is computed by one thread, in the order of the CPU.

#if INPUT_BYTES == 8
typedef double Feature;
#elif INPUT_BYTES == 4
typedef float Feature;
#else
typedef unsigned char Feature;
#endif

// The fields of FOREST in predicting.py; see okforest.engine.Trees.
struct ForestArrays {
  const long long *node_offsets, *member_offsets, *subset_offsets;
  const int *feature, *left;
  const double* threshold;
  const signed char* missing_left;
  const int* subset;
  const unsigned long long* subset_words;
  const int* n_categories;
  const int *begin, *end;
  const double* weight;
  const int *members, *times;  // times is null if every member was drawn once
  const double* row_weight;
  long long n_trees;
};

struct Walk {
  ForestArrays forest;
  const Feature* X;  // n_rows x n_columns
  int* leaves;       // n_rows x n_trees
  long long n_rows, n_columns;
};

__device__ inline bool goes_left(const ForestArrays& forest, long long tree, long long node,
                                 double x) {
  const bool missing_left = forest.missing_left[node] != 0;
  if (x != x) return missing_left;
  const int subset = forest.subset[node];
  if (subset < 0) return x <= forest.threshold[node];
  const int n_categories = forest.n_categories[forest.feature[node]];
  if (!(x >= 0.0 && x < n_categories)) return missing_left;
  const unsigned code = static_cast<unsigned>(x);
  const unsigned long long word =
      forest.subset_words[forest.subset_offsets[tree] + subset + code / 64];
  return (word >> (code % 64)) & 1;
}

// A thread follows one row through some of the trees.
KERNEL(256, 1) follow_trees(RECORD(Walk) walk) {
  const ForestArrays& forest = walk.forest;
  const long long row = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (row >= walk.n_rows) return;
  const Feature* x = walk.X + row * walk.n_columns;
  for (long long tree = blockIdx.y; tree < forest.n_trees; tree += gridDim.y) {
    const long long root = forest.node_offsets[tree];
    int node = 0;
    for (int left; (left = forest.left[root + node]) >= 0;) {
      const double value = static_cast<double>(x[forest.feature[root + node]]);
      node = left + (goes_left(forest, tree, root + node, value) ? 0 : 1);
    }
    walk.leaves[row * forest.n_trees + tree] = node;
  }
}

struct Means {
  ForestArrays forest;
  const int* leaves;     // n_rows x n_trees; -1 where a tree does not contribute
  const double* values;  // one row per training row
  double* means;         // n_rows x n_columns
  long long n_rows, n_columns;
};

// A block takes a row and some columns, a thread a column.
KERNEL(256, 1) average_leaves(RECORD(Means) of) {
  const ForestArrays& forest = of.forest;
  const long long row = blockIdx.x;
  const long long column = blockIdx.y * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (row >= of.n_rows || column >= of.n_columns) return;
  const int* leaves = of.leaves + row * forest.n_trees;
  int n_used = 0;
  for (long long tree = 0; tree < forest.n_trees; ++tree) n_used += leaves[tree] >= 0;
  const double share = 1.0 / (n_used > 0 ? n_used : 1);
  double sum = 0.0;
  for (long long tree = 0; tree < forest.n_trees; ++tree) {
    if (leaves[tree] < 0) continue;
    const long long node = forest.node_offsets[tree] + leaves[tree];
    const long long first = forest.member_offsets[tree];
    double mean = 0.0;
    for (long long m = first + forest.begin[node]; m < first + forest.end[node]; ++m) {
      const long long member = forest.members[m];
      const double drawn = forest.times == nullptr ? 1.0 : forest.times[m];
      const double part = drawn * forest.row_weight[member] / forest.weight[node];
      mean += part * of.values[member * of.n_columns + column];
    }
    sum += share * mean;
  }
  of.means[row * of.n_columns + column] = sum;
}

struct SparseProduct {
  const double* data;  // a matrix in compressed rows
  const int* indices;
  const long long* offsets;
  const double* values;
  double* product;  // n_rows x n_columns
  long long n_rows, n_columns;
};

// A block takes a row and some columns; blocks of the same columns follow each other, so that these
// stay in cache.
KERNEL(256, 1) multiply_rows(RECORD(SparseProduct) of) {
  const long long row = blockIdx.x;
  const long long column = blockIdx.y * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (row >= of.n_rows || column >= of.n_columns) return;
  double sum = 0.0;
  for (long long k = of.offsets[row]; k < of.offsets[row + 1]; ++k) {
    sum += of.data[k] * of.values[of.indices[k] * of.n_columns + column];
  }
  of.product[row * of.n_columns + column] = sum;
}
