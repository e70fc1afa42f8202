#include "nn/initialisers.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <array>
#include <cmath>

#include "base/random.h"

namespace stretto::nn {
namespace {

constexpr int64_t kDrawnRows = 64;         // that one thread draws at least
constexpr int64_t kGrainElements = 32768;  // of vectors that one thread makes orthogonal

/// Fills a matrix row by row; `draw_one` is called with the row's own stream, and gives doubles.
template <class Number, class Draw>
at::Tensor rows_of(const DrawnShape& shape, uint64_t key, const Draw& draw_one) {
  at::Tensor matrix = at::empty({shape.rows, shape.columns}, shape.dtype);
  auto* data = matrix.mutable_data_ptr<Number>();
  at::parallel_for(0, shape.rows, kDrawnRows, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      RandomStream stream(key, static_cast<uint64_t>(row));
      for (int64_t col = 0; col < shape.columns; ++col) {
        data[row * shape.columns + col] = static_cast<Number>(draw_one(stream));
      }
    }
  });
  return matrix;
}

// Rounded as they are drawn: a table of doubles beside that of floats would make starts slower.
template <class Draw>
at::Tensor drawn_rows(const DrawnShape& shape, uint64_t key, const Draw& draw_one) {
  return shape.dtype == at::kDouble ? rows_of<double>(shape, key, draw_one)
                                    : rows_of<float>(shape, key, draw_one);
}

at::Tensor uniform_rows(const DrawnShape& shape, uint64_t key, double bound) {
  return drawn_rows(
      shape, key, [bound](RandomStream& stream) { return bound * (2.0 * stream.uniform() - 1.0); });
}

at::Tensor normal_rows(const DrawnShape& shape, uint64_t key, double deviation) {
  return drawn_rows(shape, key,
                    [deviation](RandomStream& stream) { return deviation * stream.normal(); });
}

at::Tensor truncated_rows(const DrawnShape& shape, uint64_t key, double deviation) {
  constexpr double kSigmas = 2;
  return drawn_rows(shape, key, [deviation](RandomStream& stream) {
    double value = stream.normal();
    while (std::abs(value) > kSigmas) value = stream.normal();
    return deviation * value;
  });
}

// Eight sums side by side: fast, and always in one order.
double dot_product(const double* a, const double* b, int64_t size) {
  constexpr int64_t kSums = 8;
  std::array<double, kSums> sums{};
  int64_t i = 0;
  for (; i + kSums <= size; i += kSums) {
    for (int64_t k = 0; k < kSums; ++k) {
      sums[static_cast<size_t>(k)] += a[i + k] * b[i + k];
    }
  }
  double sum = 0;
  for (; i < size; ++i) sum += a[i] * b[i];
  for (const double part : sums) sum += part;
  return sum;
}

// Modified Gram-Schmidt. LAPACK's decomposition is faster, but its bits depend on the number of
// threads; normals are so far from dependent that in double nothing is lost.
void make_orthonormal(double* vectors, int64_t count, int64_t size) {
  for (int64_t i = 0; i < count; ++i) {
    double* unit = vectors + i * size;
    const double length = std::sqrt(dot_product(unit, unit, size));
    for (int64_t k = 0; k < size; ++k) unit[k] /= length;
    const int64_t grain = kGrainElements / size + 1;
    at::parallel_for(i + 1, count, grain, [&](int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end; ++j) {
        double* other = vectors + j * size;
        const double along = dot_product(unit, other, size);
        for (int64_t k = 0; k < size; ++k) other[k] -= along * unit[k];
      }
    });
  }
}

at::Tensor orthogonal_parts(const DrawnShape& shape, uint64_t key, double gain) {
  DrawnShape wide = shape;
  wide.dtype = at::kDouble;
  at::Tensor matrix = normal_rows(wide, key, 1);
  const int64_t rows = shape.rows / shape.parts;
  for (int64_t part = 0; part < shape.parts; ++part) {
    at::Tensor one = matrix.narrow(0, part * rows, rows);
    // The fewer of rows and columns can be orthonormal.
    at::Tensor vectors = rows <= shape.columns ? one : one.t().contiguous();
    make_orthonormal(vectors.mutable_data_ptr<double>(), vectors.size(0), vectors.size(1));
    if (rows > shape.columns) one.copy_(vectors.t());
  }
  return matrix.mul_(gain);
}

at::Tensor drawn(const InitRule& rule, const DrawnShape& shape, uint64_t key) {
  const auto fan_in = static_cast<double>(shape.columns);
  const auto fan_out = static_cast<double>(shape.rows / shape.parts);
  const double number = rule.number;
  switch (rule.distribution) {
    case Distribution::kXavierUniform:
      return uniform_rows(shape, key, number * std::sqrt(6 / (fan_in + fan_out)));
    case Distribution::kXavierNormal:
      return normal_rows(shape, key, number * std::sqrt(2 / (fan_in + fan_out)));
    case Distribution::kHeUniform:
      return uniform_rows(shape, key, number * std::sqrt(6 / fan_in));
    case Distribution::kHeNormal:
      return normal_rows(shape, key, number * std::sqrt(2 / fan_in));
    case Distribution::kUniform:
      return uniform_rows(shape, key, number);
    case Distribution::kNormal:
      return normal_rows(shape, key, number);
    case Distribution::kTruncatedNormal:
      return truncated_rows(shape, key, number);
    case Distribution::kOrthogonal:
      return orthogonal_parts(shape, key, number);
    case Distribution::kConstant:
      break;
  }
  return at::full({shape.rows, shape.columns}, number, shape.dtype);
}

}  // namespace

at::Tensor draw(const InitRule& rule, const DrawnShape& shape, uint64_t key) {
  return drawn(rule, shape, key).to(shape.dtype);
}

}  // namespace stretto::nn
