// Outputs as the kernels read them: around their mean, as pairs of float16 whose sum has 22 bits.

struct Packing {
  const double* phi;     // n x rank, some rows
  const double* mean;    // rank
  const double* weight;  // per row
  u32 *pairs, *weighted;
  double* squares;
  i64 n, rank, width;
  double scale;  // a power of two
};

__device__ inline u32 pair_of(double x) {
  const u32 high = half_of(static_cast<float>(x));
  return high | half_of(static_cast<float>(x - float_of(high))) << 16;
}

KERNEL(THREADS, 4) pack_outputs(RECORD(Packing) packing, int weighted) {
  const i64 row = blockIdx.x * static_cast<i64>(WARPS) + warp_of();
  if (row >= packing.n) return;
  double square = 0.0, raw = 0.0;
  for (i64 column = lane_of(); column < packing.width; column += 32) {
    double x = 0.0;
    if (column < packing.rank) {
      x = packing.phi[row * packing.rank + column] * packing.scale;
      raw += x * x;
      x -= packing.mean[column] * packing.scale;
    }
    const u32 pair = pair_of(x);
    const double kept = output_of(pair);
    square += kept * kept;
    packing.pairs[row * packing.width + column] = pair;
    if (weighted) {
      packing.weighted[row * packing.width + column] = pair_of(kept * packing.weight[row]);
    }
  }
  square = sum_of_warp(square);
  raw = sum_of_warp(raw);
  if (lane_of() == 0) {
    packing.squares[2 * row] = square;
    packing.squares[2 * row + 1] = raw;
  }
}
