// Adafactor on all tensors at once: each kernel reads from the plan what its block does. Sums are
// added in the order of the plan, so that equal inputs give equal bits.
#include "kernels/cuda/device.cuh"
#include "kernels/optimizer/cuda_adafactor_launch.h"

namespace stretto::kernels::cuda {
namespace {

constexpr int kWarps = kThreads / kWarp;
static_assert(kThreads == kAdafactorThreads && kTileColumns == kThreads);

/// Sums of squares of a tile's rows and columns. A warp takes a row at a time, a lane every 32nd
/// column of it.
__global__ void sum_tiles(const FactorTile* tiles, const float* grads, float scale,
                          float* partials) {
  __shared__ float of_warp[kWarps][kTileColumns];
  const FactorTile tile = tiles[blockIdx.x];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  float of_column[kTileColumns / kWarp] = {};
  for (int row = warp; row < tile.rows; row += kWarps) {
    const float* from = grads + tile.grads + row * tile.stride;
    float sum = 0;
#pragma unroll
    for (int k = 0; k < kTileColumns / kWarp; ++k) {
      const int column = lane + k * kWarp;
      const float x = column < tile.columns ? from[column] * scale : 0.0f;
      of_column[k] += x * x;
      sum += x * x;
    }
    sum = warp_sum(sum);
    if (lane == 0) partials[tile.row_sums + row] = sum;
  }
#pragma unroll
  for (int k = 0; k < kTileColumns / kWarp; ++k) of_warp[warp][lane + k * kWarp] = of_column[k];
  __syncthreads();
  const int column = threadIdx.x;
  if (column >= tile.columns) return;
  float sum = 0;
  for (int w = 0; w < kWarps; ++w) sum += of_warp[w][column];
  partials[tile.column_sums + column] = sum;
}

/// Moving means of rows and columns.
__global__ void fold(const FactorFold* folds, const AdafactorMemory memory,
                     const AdafactorScalars scalars) {
  __shared__ double of_part[kThreads];
  const FactorFold f = folds[blockIdx.x];
  const int64_t entry = f.first + threadIdx.x % f.width;
  const int part = threadIdx.x / f.width, parts = kThreads / f.width;
  double sum = 0;
  if (entry < f.last) {
    const float* from = (f.from_grads ? memory.grads : memory.partials) + f.source +
                        entry / f.group * f.group_step + entry % f.group;
    for (int term = part; term < f.terms; term += parts) {
      const float value = from[term * f.term_step], scaled = value * scalars.grad;
      sum += f.from_grads ? scaled * scaled : value;
    }
  }
  of_part[threadIdx.x] = sum;
  __syncthreads();
  if (part > 0 || entry >= f.last) return;
  for (int p = 1; p < parts; ++p) sum += of_part[p * f.width + threadIdx.x];
  float* mean = (f.of_rows ? memory.rows : memory.columns) + f.moments + entry;
  const double before = *mean;
  *mean = static_cast<float>(before + scalars.share * (sum / f.divisor - before));
}

/// For each row its moving mean over the mean of those of its matrix.
__global__ void share_rows(const FactorShares* chunks, const float* moments, float* shares) {
  const FactorShares chunk = chunks[blockIdx.x];
  if (!chunk.factored) {
    if (threadIdx.x == 0) shares[chunk.shares] = 1;
    return;
  }
  if (chunk.by_thread && threadIdx.x >= chunk.matrices) return;
  // Threads of one matrix take every `step`-th row of it.
  const int64_t first = chunk.by_thread ? 0 : threadIdx.x, step = chunk.by_thread ? 1 : kThreads;
  const int64_t matrix = chunk.by_thread ? threadIdx.x * chunk.rows : 0;
  const float* from = moments + chunk.moments + matrix;
  double sum = 0;
  for (int64_t row = first; row < chunk.rows; row += step) sum += from[row];
  if (!chunk.by_thread) sum = block_sum(sum);
  const double mean = fmax(sum / static_cast<double>(chunk.rows), kAdafactorEpsilon);
  for (int64_t row = first; row < chunk.rows; row += step)
    shares[chunk.shares + matrix + row] = static_cast<float>(from[row] / mean);
}

/// Where a thread is in a tensor's matrices. It goes on by kThreads elements with additions only.
struct Walk {
  int64_t column, row, share, moments;  // share: row of all matrices; moments: of this matrix
  int64_t columns_on, rows_on, shares_on, moments_on;

  __device__ Walk(const FactorTensor& t, int64_t element) {
    share = element / t.columns;
    column = element % t.columns;
    row = share % t.rows;
    moments = share / t.rows * t.columns;
    shares_on = kThreads / t.columns;
    columns_on = kThreads % t.columns;
    rows_on = shares_on % t.rows;
    moments_on = shares_on / t.rows * t.columns;
  }
  __device__ void advance(const FactorTensor& t) {
    column += columns_on;
    row += rows_on;
    share += shares_on;
    moments += moments_on;
    if (column >= t.columns) {
      column -= t.columns;
      ++row;
      ++share;
    }
    if (row >= t.rows) {
      row -= t.rows;
      moments += t.columns;
    }
  }
};

/// use(i, weight, update) for elements of one block, i counted from the first of all parameters.
/// Some elements are read before the first of them is used: more loads are under way.
template <class Use>
__device__ void for_updates(const AdafactorMemory& memory, const FactorBlock& block, float scale,
                            const Use& use) {
  constexpr int kAhead = 4;
  const FactorTensor t = memory.tensors.first[block.tensor];
  const float floor = static_cast<float>(kAdafactorEpsilon * kAdafactorEpsilon);
  const float *shares = memory.shares + t.shares, *columns = memory.columns + t.column_moments;
  Walk walk(t, block.begin + threadIdx.x);
  for (int64_t i = block.begin + threadIdx.x; i < block.end; i += kAhead * kThreads) {
    float weight[kAhead], update[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      const int64_t at = i + k * kThreads;
      if (at < block.end) {
        const float moment = shares[walk.share] * columns[walk.moments + walk.column];
        weight[k] = memory.params[t.begin + at];
        update[k] = memory.grads[t.begin + at] * scale * rsqrtf(moment > floor ? moment : floor);
      }
      walk.advance(t);
    }
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      const int64_t at = i + k * kThreads;
      if (at < block.end) use(t.begin + at, weight[k], update[k]);
    }
  }
}

/// Sums of squares of weights and updates, one pair for each block.
__global__ void sum_updates(const AdafactorMemory memory, float scale) {
  double weight = 0, update = 0;
  for_updates(memory, memory.blocks.first[blockIdx.x], scale, [&](int64_t, float p, float step) {
    weight += static_cast<double>(p) * p;
    update += static_cast<double>(step) * step;
  });
  weight = block_sum(weight);
  update = block_sum(update);
  if (threadIdx.x == 0) {
    memory.sums[blockIdx.x].weight = weight;
    memory.sums[blockIdx.x].update = update;
  }
}

/// What each tensor's update is multiplied by, from the sums of its blocks.
__global__ void set_rates(const AdafactorMemory memory, const AdafactorScalars scalars) {
  const FactorTensor t = memory.tensors.first[blockIdx.x];
  double weight = 0, update = 0;
  for (int64_t b = t.first_block + threadIdx.x; b < t.last_block; b += kThreads) {
    weight += memory.sums[b].weight;
    update += memory.sums[b].update;
  }
  weight = block_sum(weight);
  update = block_sum(update);
  if (threadIdx.x > 0) return;
  const double lr = scalars.lr * t.lr_scale;
  const double rate = fmax(kAdafactorMinRms, sqrt(weight / t.count)) * fmin(lr, scalars.most);
  const double rms = sqrt(update / t.count) / kAdafactorMaxUpdateRms;
  memory.rates[blockIdx.x].shrink = static_cast<float>(1 - lr * t.weight_decay);
  memory.rates[blockIdx.x].rate = static_cast<float>(rate / fmax(1.0, rms));
}

__global__ void apply_updates(const AdafactorMemory memory, float scale) {
  const FactorBlock block = memory.blocks.first[blockIdx.x];
  const FactorRate s = memory.rates[block.tensor];
  for_updates(memory, block, scale, [&](int64_t i, float p, float step) {
    memory.params[i] = p * s.shrink - s.rate * step;
  });
}

template <class Chunk>
unsigned grid(const Chunks<Chunk>& chunks) {
  return static_cast<unsigned>(chunks.count);
}

}  // namespace

void step_adafactor(const AdafactorMemory& m, const AdafactorScalars& s, cudaStream_t stream) {
  if (m.tensors.count == 0) return;
  if (m.tiles.count > 0)
    sum_tiles<<<grid(m.tiles), kThreads, 0, stream>>>(m.tiles.first, m.grads, s.grad, m.partials);
  fold<<<grid(m.folds), kThreads, 0, stream>>>(m.folds.first, m, s);
  share_rows<<<grid(m.share_chunks), kThreads, 0, stream>>>(m.share_chunks.first, m.rows, m.shares);
  sum_updates<<<grid(m.blocks), kThreads, 0, stream>>>(m, s.grad);
  set_rates<<<grid(m.tensors), kThreads, 0, stream>>>(m, s);
  apply_updates<<<grid(m.blocks), kThreads, 0, stream>>>(m, s.grad);
}

}  // namespace stretto::kernels::cuda
