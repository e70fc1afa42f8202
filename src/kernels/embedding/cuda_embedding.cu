// Embedding rows and their gradient. The gradient adds the rows of one token in the order in which
// they occur, without atomics, so that it is the same in every run.
#include <limits>

#include "kernels/cuda/device.cuh"

namespace stretto::kernels::cuda {
namespace {

template <class T>
__global__ void embed_kernel(Matrix<T> table, int64_t vocab, const int64_t* ids, float scale,
                             Matrix<T> position, Matrix<T> out, int64_t rows, int64_t groups) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < rows * groups; i += step) {
    const int64_t row = i / groups, column = i % groups * kLanes;
    const int64_t id = ids[row];
    float value[kLanes], place[kLanes] = {};
    if (id >= 0 && id < vocab)
      table.load(id, column, value);
    else
      for (float& x : value) x = std::numeric_limits<float>::quiet_NaN();
    if (position.data != nullptr) position.load(row, column, place);
#pragma unroll
    for (int j = 0; j < kLanes; ++j) value[j] = value[j] * scale + place[j];
    out.store(row, column, value);
  }
}

/// First index in [begin, end) whose id is above `id`.
__device__ int64_t end_of_run(const int64_t* ids, int64_t begin, int64_t end, int64_t id) {
  while (begin < end) {
    const int64_t middle = begin + (end - begin) / 2;
    if (ids[middle] > id)
      end = middle;
    else
      begin = middle + 1;
  }
  return begin;
}

// Blocks (i, tile): the i-th sorted occurrence works only if it is the first of its token.
template <class T>
__global__ void embed_backward_kernel(const T* dy, int64_t width, const int64_t* ids,
                                      const int64_t* order, int64_t count, int64_t vocab,
                                      float scale, T* dtable) {
  const int64_t begin = blockIdx.x, id = ids[begin];
  if (id < 0 || id >= vocab || (begin > 0 && ids[begin - 1] == id)) return;
  const int64_t column = int64_t{blockIdx.y} * blockDim.x + threadIdx.x;
  if (column >= width) return;
  const int64_t end = end_of_run(ids, begin, count, id);
  float sum = 0;
#pragma unroll 8
  for (int64_t i = begin; i < end; ++i) sum += widen(dy[order[i] * width + column]);
  dtable[id * width + column] = narrow<T>(sum * scale);
}

}  // namespace

void embed(const Rows& rows, const void* table, int64_t vocab, const int64_t* ids, float scale,
           const void* position, void* out) {
  const int64_t groups = (rows.width + kLanes - 1) / kLanes;
  if (rows.count * groups == 0) return;
  with_type(rows.type, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const auto of = [&](const void* data) { return matrix<T>(data, rows.width); };
    embed_kernel<<<blocks_for(rows.count * groups), kThreads, 0, rows.stream>>>(
        of(table), vocab, ids, scale, of(position), of(out), rows.count, groups);
  });
}

void embed_backward(const Rows& rows, const void* dy, const int64_t* sorted_ids,
                    const int64_t* order, int64_t vocab, float scale, void* dtable) {
  if (rows.count * rows.width == 0) return;
  const dim3 grid(static_cast<unsigned>(rows.count),
                  static_cast<unsigned>((rows.width + kThreads - 1) / kThreads));
  with_type(rows.type, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    embed_backward_kernel<<<grid, kThreads, 0, rows.stream>>>(static_cast<const T*>(dy), rows.width,
                                                              sorted_ids, order, rows.count, vocab,
                                                              scale, static_cast<T*>(dtable));
  });
}

}  // namespace stretto::kernels::cuda
