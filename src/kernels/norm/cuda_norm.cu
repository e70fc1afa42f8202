// Layer normalisation. A team of warps reads a row once and holds it in registers; sums over a row
// go by shuffles, sums over rows stay in registers until a block has seen its part of them.
#include "kernels/cuda/device.cuh"

namespace stretto::kernels::cuda {
namespace {

/// Columns of a Vector16, which one instruction moves, so that neighbours in a warp move whole
/// sectors: kLanes of fp32 would go in two halves of each.
template <class T>
constexpr int kVectorNumbers = 16 / static_cast<int>(sizeof(T));

/// 16 bytes of a row in registers.
template <class T>
struct alignas(16) Vector16 {
  T values[kVectorNumbers<T>];
};

/// kWarps warps of a block share a row, each of their threads holds kColumnsOfThread columns of it.
/// The columns of a thread depend on nothing but the type, and so do all sums.
template <int kWarps, int kColumnsOfThread>
struct Team {
  static constexpr int kColumns = kColumnsOfThread, kSize = kWarps * kWarp;
  static constexpr int kWidth = kSize * kColumns, kTeams = kThreads / kSize;

  __device__ static int index() { return static_cast<int>(threadIdx.x) / kSize; }
  __device__ static int thread() { return static_cast<int>(threadIdx.x) % kSize; }

  template <class T>
  __device__ static int column(int i) {
    return (i / kVectorNumbers<T> * kSize + thread()) * kVectorNumbers<T> + i % kVectorNumbers<T>;
  }

  /// Zero behind the row's end.
  template <class T>
  __device__ static void load(const Matrix<T>& from, int64_t row, float (&out)[kColumns]) {
#pragma unroll
    for (int i = 0; i < kColumns; i += kVectorNumbers<T>) {
      const int first = column<T>(i);
      const T* at = from.data + row * from.width + first;
      if (from.aligned && first < from.width) {
        const Vector16<T> vector = *reinterpret_cast<const Vector16<T>*>(at);
#pragma unroll
        for (int j = 0; j < kVectorNumbers<T>; ++j) out[i + j] = widen(vector.values[j]);
      } else {
#pragma unroll
        for (int j = 0; j < kVectorNumbers<T>; ++j)
          out[i + j] = first + j < from.width ? widen(at[j]) : 0.0f;
      }
    }
  }

  template <class T>
  __device__ static void store(const Matrix<T>& to, int64_t row, const float (&in)[kColumns]) {
#pragma unroll
    for (int i = 0; i < kColumns; i += kVectorNumbers<T>) {
      const int first = column<T>(i);
      T* at = to.data + row * to.width + first;
      if (to.aligned && first < to.width) {
        Vector16<T> vector;
#pragma unroll
        for (int j = 0; j < kVectorNumbers<T>; ++j) vector.values[j] = narrow<T>(in[i + j]);
        *reinterpret_cast<Vector16<T>*>(at) = vector;
      } else {
#pragma unroll
        for (int j = 0; j < kVectorNumbers<T>; ++j)
          if (first + j < to.width) at[j] = narrow<T>(in[i + j]);
      }
    }
  }

  /// Each value becomes its sum over the team, the same bits in each thread. All threads of the
  /// block must come here.
  template <int kValues>
  __device__ static void add_up(float (&values)[kValues]) {
#pragma unroll
    for (float& value : values) value = warp_sum(value);
    if constexpr (kWarps > 1) {
      __shared__ float shared[kThreads / kWarp][kValues];
      __syncthreads();  // an earlier call may still be reading
      if (threadIdx.x % kWarp == 0) {
#pragma unroll
        for (int k = 0; k < kValues; ++k) shared[threadIdx.x / kWarp][k] = values[k];
      }
      __syncthreads();
#pragma unroll
      for (int k = 0; k < kValues; ++k) {
        values[k] = shared[index() * kWarps][k];
#pragma unroll
        for (int warp = 1; warp < kWarps; ++warp) values[k] += shared[index() * kWarps + warp][k];
      }
    }
  }
};

/// Calls `use` with the smallest team whose threads hold a row.
template <class Use>
void with_team(int64_t width, const Use& use) {
  if (width <= Team<1, 8>::kWidth)
    use(Team<1, 8>());
  else if (width <= Team<1, 16>::kWidth)
    use(Team<1, 16>());
  else if (width <= Team<2, 16>::kWidth)
    use(Team<2, 16>());
  else if (width <= Team<4, 16>::kWidth)
    use(Team<4, 16>());
  else if (width <= Team<8, 16>::kWidth)
    use(Team<8, 16>());
  else
    use(Team<8, 32>());
}
static_assert(Team<8, 32>::kWidth == kNormWidth);

// The variance is that of the differences from the mean, which are in registers by then.
template <class T, class Team>
__global__ void __launch_bounds__(kThreads)
    norm_kernel(Matrix<T> x, Matrix<T> weight, Matrix<T> bias, float epsilon, Matrix<T> out,
                float* mean, float* inverse_deviation, int64_t count) {
  const int64_t row = int64_t{blockIdx.x} * Team::kTeams + Team::index();
  const bool is_row = row < count;
  const float width = static_cast<float>(x.width);
  float value[Team::kColumns] = {};
  if (is_row) Team::load(x, row, value);

  float sum[1] = {}, squares[1] = {};
#pragma unroll
  for (int i = 0; i < Team::kColumns; ++i) sum[0] += value[i];
  Team::add_up(sum);
  const float centre = sum[0] / width;
#pragma unroll
  for (int i = 0; i < Team::kColumns; ++i) {
    value[i] = Team::template column<T>(i) < x.width ? value[i] - centre : 0.0f;
    squares[0] += value[i] * value[i];
  }
  Team::add_up(squares);
  if (!is_row) return;
  const float inverse = 1 / sqrtf(squares[0] / width + epsilon);

  float gain[Team::kColumns], shift[Team::kColumns];
  Team::load(weight, 0, gain);
  Team::load(bias, 0, shift);
#pragma unroll
  for (int i = 0; i < Team::kColumns; ++i) value[i] = value[i] * inverse * gain[i] + shift[i];
  Team::store(out, row, value);
  if (Team::thread() == 0) {
    mean[row] = centre;
    inverse_deviation[row] = inverse;
  }
}

/// A matrix for each pointer of NormSlopes.
template <class T>
struct SlopesOfRows {
  Matrix<T> x, dy, weight, dx;
  const float *mean, *inverse_deviation;
  float* partial;
  int64_t count;
};

int64_t rows_of_part(int64_t count) {
  constexpr int64_t kMostParts = 264, kLeastRows = 8;  // two blocks for each processor of an H100
  const int64_t rows = (count + kMostParts - 1) / kMostParts;
  return rows > kLeastRows ? rows : kLeastRows;
}

/// The sums of the teams of a block, added in their order.
template <class T, class Team>
__device__ void write_partial(const float (&sums)[Team::kColumns], int64_t width, float* to) {
  __shared__ float shared[Team::kTeams][Team::kWidth];
  __syncthreads();  // an earlier call may still be reading
#pragma unroll
  for (int i = 0; i < Team::kColumns; ++i)
    shared[Team::index()][Team::template column<T>(i)] = sums[i];
  __syncthreads();
  for (int column = static_cast<int>(threadIdx.x); column < width; column += kThreads) {
    float sum = shared[0][column];
#pragma unroll
    for (int team = 1; team < Team::kTeams; ++team) sum += shared[team][column];
    to[column] = sum;
  }
}

// Block b has the b-th part of the rows, whose teams take turns.
template <class T, class Team>
__global__ void __launch_bounds__(kThreads, Team::kColumns > 16 ? 1 : 2)
    norm_backward_kernel(SlopesOfRows<T> slopes, int64_t part) {
  const int64_t begin = int64_t{blockIdx.x} * part, width = slopes.x.width;
  const int64_t end = begin + part < slopes.count ? begin + part : slopes.count;
  float gain[Team::kColumns], dweight[Team::kColumns] = {}, dbias[Team::kColumns] = {};
  Team::load(slopes.weight, 0, gain);

  // All teams make as many steps, since they meet in add_up.
  for (int64_t first = begin; first < end; first += Team::kTeams) {
    const int64_t row = first + Team::index();
    const bool is_row = row < end;
    float x[Team::kColumns] = {}, dy[Team::kColumns] = {}, mean = 0, inverse = 0;
    if (is_row) {
      Team::load(slopes.x, row, x);
      Team::load(slopes.dy, row, dy);
      mean = slopes.mean[row];
      inverse = slopes.inverse_deviation[row];
    }
    float sums[2] = {};
#pragma unroll
    for (int i = 0; i < Team::kColumns; ++i) {
      x[i] = Team::template column<T>(i) < width ? (x[i] - mean) * inverse : 0.0f;
      dweight[i] += dy[i] * x[i];
      dbias[i] += dy[i];
      dy[i] *= gain[i];
      sums[0] += dy[i] * x[i];
      sums[1] += dy[i];
    }
    if (slopes.dx.data == nullptr) continue;
    Team::add_up(sums);
    const float along = sums[0] / static_cast<float>(width);
    const float centre = sums[1] / static_cast<float>(width);
#pragma unroll
    for (int i = 0; i < Team::kColumns; ++i) dy[i] = inverse * (dy[i] - centre - x[i] * along);
    if (is_row) Team::store(slopes.dx, row, dy);
  }

  if (slopes.partial == nullptr) return;
  float* const to = slopes.partial + int64_t{blockIdx.x} * width;
  write_partial<T, Team>(dweight, width, to);
  write_partial<T, Team>(dbias, width, to + int64_t{gridDim.x} * width);
}

// Blocks (32 columns, dweight or dbias): warp w adds parts w, w + kWarps and so on, the first warp
// adds what the warps have, in their order.
constexpr int kPartWarps = 32;

template <class T>
__global__ void __launch_bounds__(kPartWarps* kWarp)
    norm_sums_kernel(const float* partial, int64_t parts, int64_t width, T* dweight, T* dbias) {
  T* const to = blockIdx.y == 0 ? dweight : dbias;
  if (to == nullptr) return;
  __shared__ float shared[kPartWarps][kWarp];
  const int64_t column = int64_t{blockIdx.x} * kWarp + threadIdx.x;
  const float* from = partial + blockIdx.y * parts * width + column;
  float sum = 0;
  if (column < width) {
#pragma unroll 8
    for (int64_t part = threadIdx.y; part < parts; part += kPartWarps) sum += from[part * width];
  }
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= width) return;
  sum = 0;
#pragma unroll
  for (int warp = 0; warp < kPartWarps; ++warp) sum += shared[warp][threadIdx.x];
  to[column] = narrow<T>(sum);
}

}  // namespace

int64_t norm_parts(int64_t count) {
  const int64_t rows = rows_of_part(count);
  return (count + rows - 1) / rows;
}

void layer_norm(const Rows& rows, const void* x, const void* weight, const void* bias,
                float epsilon, void* out, float* mean, float* inverse_deviation) {
  if (rows.count * rows.width == 0) return;
  with_type(rows.type, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const auto of = [&](const void* data) { return matrix<T>(data, rows.width); };
    with_team(rows.width, [&](auto team) {
      using Team = decltype(team);
      const auto blocks = static_cast<unsigned>((rows.count + Team::kTeams - 1) / Team::kTeams);
      norm_kernel<T, Team><<<blocks, kThreads, 0, rows.stream>>>(
          of(x), of(weight), of(bias), epsilon, of(out), mean, inverse_deviation, rows.count);
    });
  });
}

void layer_norm_backward(const Rows& rows, const NormSlopes& slopes) {
  if (rows.width == 0) return;
  const bool sums = slopes.dweight != nullptr || slopes.dbias != nullptr;
  const int64_t parts = norm_parts(rows.count);
  with_type(rows.type, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const auto of = [&](const void* data) { return matrix<T>(data, rows.width); };
    const SlopesOfRows<T> all{of(slopes.x),
                              of(slopes.dy),
                              of(slopes.weight),
                              of(slopes.dx),
                              slopes.mean,
                              slopes.inverse_deviation,
                              sums ? slopes.partial : nullptr,
                              rows.count};
    if (parts > 0 && (sums || slopes.dx != nullptr)) {
      with_team(rows.width, [&](auto team) {
        norm_backward_kernel<T, decltype(team)>
            <<<static_cast<unsigned>(parts), kThreads, 0, rows.stream>>>(all,
                                                                         rows_of_part(rows.count));
      });
    }
    if (!sums) return;
    const dim3 grid(static_cast<unsigned>((rows.width + kWarp - 1) / kWarp), 2);
    norm_sums_kernel<<<grid, dim3(kWarp, kPartWarps), 0, rows.stream>>>(
        slopes.partial, parts, rows.width, static_cast<T*>(slopes.dweight),
        static_cast<T*>(slopes.dbias));
  });
}

}  // namespace stretto::kernels::cuda
