#include "kernels/adafactor.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cpu/table.h"

namespace stretto::kernels {
namespace {

// The constants of torch.optim.Adafactor: exponent of the moving mean, epsilon of gradients (as a
// magnitude) and of weights, and the largest root mean square of an update.
constexpr double kDecayExponent = -0.8, kMinRms = 1e-3, kMaxUpdateRms = 1.0;
constexpr double kEpsilon = std::numeric_limits<float>::epsilon();

/// Weight of the newest gradient in the moving means.
double share_of(const AdafactorStep& step) {
  return std::pow(static_cast<double>(step.number), kDecayExponent);
}

/// What the update is multiplied by, from the sums of squares of weights and of the update.
double rate_of(const AdafactorStep& step, double weight, double update, double count) {
  const double relative = std::min(step.lr, 1 / std::sqrt(static_cast<double>(step.number)));
  const double rate = std::max(kMinRms, std::sqrt(weight / count)) * relative;
  return rate / std::max(1.0, std::sqrt(update / count) / kMaxUpdateRms);
}

constexpr int64_t kRowBlock = 64;  // rows summed before anything else

/// A batch of matrices; a vector is one row whose second moments are the columns themselves.
struct Sizes {
  int64_t matrices, rows, columns;
  int64_t row_blocks() const { return (rows + kRowBlock - 1) / kRowBlock; }
};

/// Calls use(matrix, block, first row, last row) for blocks of rows, from all threads.
template <class Use>
void for_row_blocks(const Sizes& sizes, const Use& use) {
  at::parallel_for(0, sizes.matrices * sizes.row_blocks(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t matrix = i / sizes.row_blocks(), first = i % sizes.row_blocks() * kRowBlock;
      use(matrix, i, first, std::min(first + kRowBlock, sizes.rows));
    }
  });
}

void move_towards(float& mean, double value, double share) {
  mean += static_cast<float>(share * (value - static_cast<double>(mean)));
}

/// Moving means of squares along rows and columns.
void update_factors(const float* grad, float* rows, float* columns, const Sizes& sizes,
                    const AdafactorStep& step) {
  const double share = share_of(step), scale_sq = step.grad_scale * step.grad_scale;
  const auto grad_scale = static_cast<float>(step.grad_scale);
  const auto width = static_cast<size_t>(sizes.columns);
  std::vector<float> partial(static_cast<size_t>(sizes.matrices * sizes.row_blocks()) * width);
  for_row_blocks(sizes, [&](int64_t matrix, int64_t block, int64_t first, int64_t last) {
    float* sums = partial.data() + static_cast<size_t>(block) * width;
    for (int64_t row = matrix * sizes.rows + first; row < matrix * sizes.rows + last; ++row) {
      const float* from = grad + row * sizes.columns;
      cpu::table().steps.add_squares(from, sizes.columns, grad_scale, sums);
      move_towards(rows[row],
                   scale_sq * cpu::table().sum_of_squares(from, sizes.columns) /
                       static_cast<double>(sizes.columns),
                   share);
    }
  });
  at::parallel_for(0, sizes.matrices * sizes.columns, 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t matrix = i / sizes.columns, column = i % sizes.columns;
      double sum = 0;
      for (int64_t b = matrix * sizes.row_blocks(); b < (matrix + 1) * sizes.row_blocks(); ++b)
        sum += static_cast<double>(partial[static_cast<size_t>(b * sizes.columns + column)]);
      move_towards(columns[i], sum / static_cast<double>(sizes.rows), share);
    }
  });
}

/// For each row its moving mean over the mean of those of its matrix.
std::vector<float> row_shares(const float* rows, const Sizes& sizes) {
  std::vector<float> shares(static_cast<size_t>(sizes.matrices * sizes.rows));
  for (int64_t matrix = 0; matrix < sizes.matrices; ++matrix) {
    const float* from = rows + matrix * sizes.rows;
    double sum = 0;
    for (int64_t row = 0; row < sizes.rows; ++row) sum += static_cast<double>(from[row]);
    const double mean = std::max(sum / static_cast<double>(sizes.rows), kEpsilon);
    for (int64_t row = 0; row < sizes.rows; ++row)
      shares[static_cast<size_t>(matrix * sizes.rows + row)] =
          static_cast<float>(static_cast<double>(from[row]) / mean);
  }
  return shares;
}

void apply(float* param, const float* grad, const std::vector<float>& shares, const float* columns,
           const Sizes& sizes, const AdafactorStep& step) {
  FactoredScalars scalars{.grad = static_cast<float>(step.grad_scale),
                          .floor = static_cast<float>(kEpsilon * kEpsilon),
                          .shrink = static_cast<float>(1 - step.lr * step.weight_decay)};
  const auto for_rows = [&](int64_t matrix, int64_t first, int64_t last, const auto& use) {
    FactoredScalars of_row = scalars;
    for (int64_t row = matrix * sizes.rows + first; row < matrix * sizes.rows + last; ++row) {
      of_row.row = shares[static_cast<size_t>(row)];
      use(row * sizes.columns, columns + matrix * sizes.columns, of_row);
    }
  };
  std::vector<SquareSums> partial(static_cast<size_t>(sizes.matrices * sizes.row_blocks()));
  for_row_blocks(sizes, [&](int64_t matrix, int64_t block, int64_t first, int64_t last) {
    SquareSums& sums = partial[static_cast<size_t>(block)];
    for_rows(matrix, first, last, [&](int64_t at, const float* moments, const auto& numbers) {
      const SquareSums row =
          cpu::table().steps.factored_sums(param + at, grad + at, moments, sizes.columns, numbers);
      sums.weight += row.weight;
      sums.update += row.update;
    });
  });
  double weight = 0, update = 0;
  for (const SquareSums& sums : partial) {
    weight += sums.weight;
    update += sums.update;
  }
  scalars.rate = static_cast<float>(rate_of(
      step, weight, update, static_cast<double>(sizes.matrices * sizes.rows * sizes.columns)));
  for_row_blocks(sizes, [&](int64_t matrix, int64_t, int64_t first, int64_t last) {
    for_rows(matrix, first, last, [&](int64_t at, const float* moments, const auto& numbers) {
      cpu::table().steps.factored_apply(param + at, grad + at, moments, sizes.columns, numbers);
    });
  });
}

void check(const at::Tensor& param, const at::Tensor& grad, const at::Tensor& rows,
           const at::Tensor& columns) {
  const bool factored = param.dim() >= 2;
  TORCH_CHECK(param.is_contiguous() && grad.is_contiguous() && param.sizes() == grad.sizes(),
              "[kernels] adafactor_step: parameter ", param.sizes(), " and gradient ", grad.sizes(),
              " must be contiguous and of one shape");
  TORCH_CHECK(
      rows.is_contiguous() && columns.is_contiguous() &&
          (factored ? rows.numel() == param.numel() / std::max<int64_t>(1, param.size(-1)) &&
                          columns.numel() == param.numel() / std::max<int64_t>(1, param.size(-2))
                    : columns.numel() == param.numel()),
      "[kernels] adafactor_step: second moments ", rows.sizes(), " and ", columns.sizes(),
      " do not fit a parameter ", param.sizes());
}

}  // namespace

void adafactor_step(at::Tensor param, const at::Tensor& grad, at::Tensor rows, at::Tensor columns,
                    const AdafactorStep& step) {
  check(param, grad, rows, columns);
  const auto is_float = [](const at::Tensor& x) {
    return x.is_cpu() && x.scalar_type() == at::kFloat;
  };
  if (!is_float(param) || !is_float(grad) || !is_float(rows) || !is_float(columns))
    return reference::adafactor_step(param, grad, rows, columns, step);
  if (param.numel() == 0) return;
  const float* g = grad.const_data_ptr<float>();
  float* moments = columns.data_ptr<float>();
  if (param.dim() < 2) {
    const double share = share_of(step);
    for (int64_t i = 0; i < grad.numel(); ++i) {
      const double scaled = static_cast<double>(g[i]) * step.grad_scale;
      move_towards(moments[i], scaled * scaled, share);
    }
    return apply(param.data_ptr<float>(), g, {1.0f}, moments, {1, 1, param.numel()}, step);
  }
  const int64_t height = param.size(-2), width = param.size(-1);
  const Sizes sizes{param.numel() / (height * width), height, width};
  update_factors(g, rows.data_ptr<float>(), moments, sizes, step);
  apply(param.data_ptr<float>(), g, row_shares(rows.const_data_ptr<float>(), sizes), moments, sizes,
        step);
}

namespace reference {

void adafactor_step(at::Tensor param, const at::Tensor& grad, at::Tensor rows, at::Tensor columns,
                    const AdafactorStep& step) {
  const at::NoGradGuard no_grad;
  const at::Tensor g = grad * step.grad_scale, squared = g.square();
  const double share = share_of(step);
  at::Tensor moments;
  if (param.dim() < 2) {
    at::Tensor all = columns.view(param.sizes());
    all.lerp_(squared, share);
    moments = all;
  } else {
    const at::Tensor row_means = squared.mean(-1, true), column_means = squared.mean(-2, true);
    at::Tensor row = rows.view(row_means.sizes()), column = columns.view(column_means.sizes());
    row.lerp_(row_means, share);
    column.lerp_(column_means, share);
    moments = row * column / row.mean(-2, true).clamp_min(kEpsilon);
  }
  const at::Tensor update = g * moments.clamp_min(kEpsilon * kEpsilon).rsqrt();
  const double rate =
      rate_of(step, param.square().sum(at::kDouble).item<double>(),
              update.square().sum(at::kDouble).item<double>(), static_cast<double>(param.numel()));
  param.mul_(1 - step.lr * step.weight_decay).sub_(update, rate);
}

}  // namespace reference
}  // namespace stretto::kernels
