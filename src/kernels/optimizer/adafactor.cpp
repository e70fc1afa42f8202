#include "kernels/optimizer/adafactor.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/table.h"
#include "kernels/optimizer/cuda_adafactor.h"
#include "kernels/optimizer/cuda_steps.h"

namespace stretto::kernels {
namespace {

/// A step as one tensor takes it.
struct TensorStep {
  double grad_scale, lr, weight_decay;
  int64_t number;
};

TensorStep step_of(const AdafactorTensor& tensor, const AdafactorStep& step) {
  return {.grad_scale = step.grad_scale,
          .lr = step.lr * tensor.lr_scale,
          .weight_decay = tensor.weight_decay,
          .number = step.number};
}

/// Weight of the newest gradient in the moving means.
double share_of(const TensorStep& step) {
  return std::pow(static_cast<double>(step.number), kAdafactorDecay);
}

/// What the update is multiplied by, from the sums of squares of weights and of the update.
double rate_of(const TensorStep& step, double weight, double update, double count) {
  const double relative = std::min(step.lr, 1 / std::sqrt(static_cast<double>(step.number)));
  const double rate = std::max(kAdafactorMinRms, std::sqrt(weight / count)) * relative;
  return rate / std::max(1.0, std::sqrt(update / count) / kAdafactorMaxUpdateRms);
}

constexpr int64_t kRowBlock = 64;  // rows summed before anything else

int64_t row_blocks(const AdafactorTensor& sizes) {
  return (sizes.rows + kRowBlock - 1) / kRowBlock;
}

/// Calls use(matrix, block, first row, last row) for blocks of rows, from all threads.
template <class Use>
void for_row_blocks(const AdafactorTensor& sizes, const Use& use) {
  at::parallel_for(0, sizes.matrices * row_blocks(sizes), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t matrix = i / row_blocks(sizes), first = i % row_blocks(sizes) * kRowBlock;
      use(matrix, i, first, std::min(first + kRowBlock, sizes.rows));
    }
  });
}

void move_towards(float& mean, double value, double share) {
  mean += static_cast<float>(share * (value - static_cast<double>(mean)));
}

/// Moving means of squares along rows and columns.
void update_factors(const float* grad, float* rows, float* columns, const AdafactorTensor& sizes,
                    const TensorStep& step) {
  const double share = share_of(step), scale_sq = step.grad_scale * step.grad_scale;
  const auto grad_scale = static_cast<float>(step.grad_scale);
  const auto width = static_cast<size_t>(sizes.columns);
  std::vector<float> partial(static_cast<size_t>(sizes.matrices * row_blocks(sizes)) * width);
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
      for (int64_t b = matrix * row_blocks(sizes); b < (matrix + 1) * row_blocks(sizes); ++b)
        sum += static_cast<double>(partial[static_cast<size_t>(b * sizes.columns + column)]);
      move_towards(columns[i], sum / static_cast<double>(sizes.rows), share);
    }
  });
}

/// For each row its moving mean over the mean of those of its matrix.
std::vector<float> row_shares(const float* rows, const AdafactorTensor& sizes) {
  std::vector<float> shares(static_cast<size_t>(sizes.matrices * sizes.rows));
  for (int64_t matrix = 0; matrix < sizes.matrices; ++matrix) {
    const float* from = rows + matrix * sizes.rows;
    double sum = 0;
    for (int64_t row = 0; row < sizes.rows; ++row) sum += static_cast<double>(from[row]);
    const double mean = std::max(sum / static_cast<double>(sizes.rows), kAdafactorEpsilon);
    for (int64_t row = 0; row < sizes.rows; ++row)
      shares[static_cast<size_t>(matrix * sizes.rows + row)] =
          static_cast<float>(static_cast<double>(from[row]) / mean);
  }
  return shares;
}

void apply(float* param, const float* grad, const std::vector<float>& shares, const float* columns,
           const AdafactorTensor& sizes, const TensorStep& step) {
  FactoredScalars scalars{.grad = static_cast<float>(step.grad_scale),
                          .floor = static_cast<float>(kAdafactorEpsilon * kAdafactorEpsilon),
                          .shrink = static_cast<float>(1 - step.lr * step.weight_decay)};
  const auto for_rows = [&](int64_t matrix, int64_t first, int64_t last, const auto& use) {
    FactoredScalars of_row = scalars;
    for (int64_t row = matrix * sizes.rows + first; row < matrix * sizes.rows + last; ++row) {
      of_row.row = shares[static_cast<size_t>(row)];
      use(row * sizes.columns, columns + matrix * sizes.columns, of_row);
    }
  };
  std::vector<SquareSums> partial(static_cast<size_t>(sizes.matrices * row_blocks(sizes)));
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

void step_on_cpu(float* param, const float* grad, float* rows, float* columns,
                 const AdafactorTensor& sizes, const TensorStep& step) {
  if (sizes.factored) {
    update_factors(grad, rows, columns, sizes, step);
    return apply(param, grad, row_shares(rows, sizes), columns, sizes, step);
  }
  const double share = share_of(step);
  for (int64_t i = 0; i < sizes.columns; ++i) {
    const double scaled = static_cast<double>(grad[i]) * step.grad_scale;
    move_towards(columns[i], scaled * scaled, share);
  }
  apply(param, grad, {1.0f}, columns, sizes, step);
}

}  // namespace

AdafactorTensors::AdafactorTensors(std::vector<AdafactorTensor> tensors)
    : tensors_(std::move(tensors)) {}

int64_t AdafactorTensors::num_row_moments() const {
  int64_t end = 0;
  for (const AdafactorTensor& t : tensors_) end = std::max(end, t.row_moments_end());
  return end;
}

int64_t AdafactorTensors::num_column_moments() const {
  int64_t end = 0;
  for (const AdafactorTensor& t : tensors_) end = std::max(end, t.column_moments_end());
  return end;
}

void AdafactorTensors::check(const at::Tensor& params, const at::Tensor& grads,
                             const at::Tensor& rows, const at::Tensor& columns) const {
  for (const at::Tensor* buffer : {&params, &grads, &rows, &columns})
    TORCH_CHECK(buffer->dim() == 1 && buffer->is_contiguous() &&
                    buffer->device() == params.device() && grads.numel() == params.numel(),
                "[kernels] adafactor: buffers must be flat, contiguous and on one device, "
                "parameters and gradients of one length");
  const auto inside = [](int64_t begin, int64_t end, const at::Tensor& buffer) {
    return begin >= 0 && end <= buffer.numel();
  };
  for (const AdafactorTensor& t : tensors_)
    TORCH_CHECK(inside(t.begin, t.begin + t.numel(), params) &&
                    inside(t.row_moments, t.row_moments_end(), rows) &&
                    inside(t.column_moments, t.column_moments_end(), columns) &&
                    (t.factored || t.num_rows() <= 1),
                "[kernels] adafactor: ", t.matrices, " matrices [", t.rows, ", ", t.columns,
                "] at ", t.begin, " do not fit buffers of ", params.numel(), ", ", rows.numel(),
                " and ", columns.numel());
}

void AdafactorTensors::step(at::Tensor& params, const at::Tensor& grads, at::Tensor& rows,
                            at::Tensor& columns, const AdafactorStep& step) {
  check(params, grads, rows, columns);
  const auto is_float = [](const at::Tensor& x) { return x.scalar_type() == at::kFloat; };
  const bool fp32 = is_float(params) && is_float(grads) && is_float(rows) && is_float(columns);
  if (fp32 && cuda::takes_steps(params)) {
    if (table_ == nullptr || table_->device() != params.device())
      table_ =
          std::make_shared<const cuda::AdafactorTable>(plan_adafactor(tensors_), params.device());
    return table_->step(params, grads, rows, columns, step);
  }
  if (!fp32 || !params.is_cpu())
    return reference::adafactor_step(params, grads, rows, columns, tensors_, step);
  float *p = params.data_ptr<float>(), *r = rows.data_ptr<float>();
  float* c = columns.data_ptr<float>();
  const float* g = grads.const_data_ptr<float>();
  for (const AdafactorTensor& t : tensors_)
    if (t.numel() > 0)
      step_on_cpu(p + t.begin, g + t.begin, r + t.row_moments, c + t.column_moments, t,
                  step_of(t, step));
}

namespace reference {
namespace {

void step_tensor(at::Tensor param, const at::Tensor& grad, at::Tensor row, at::Tensor column,
                 const TensorStep& step) {
  const at::Tensor g = grad * step.grad_scale, squared = g.square();
  const double share = share_of(step);
  column.lerp_(squared.mean(-2, true), share);
  at::Tensor moments = column;
  if (row.defined()) {
    row.lerp_(squared.mean(-1, true), share);
    moments = row * column / row.mean(-2, true).clamp_min(kAdafactorEpsilon);
  }
  const at::Tensor update = g * moments.clamp_min(kAdafactorEpsilon * kAdafactorEpsilon).rsqrt();
  const double rate =
      rate_of(step, param.square().sum(at::kDouble).item<double>(),
              update.square().sum(at::kDouble).item<double>(), static_cast<double>(param.numel()));
  param.mul_(1 - step.lr * step.weight_decay).sub_(update, rate);
}

}  // namespace

void adafactor_step(at::Tensor& params, const at::Tensor& grads, at::Tensor& rows,
                    at::Tensor& columns, const std::vector<AdafactorTensor>& tensors,
                    const AdafactorStep& step) {
  const at::NoGradGuard no_grad;
  for (const AdafactorTensor& t : tensors) {
    if (t.numel() == 0) continue;
    const auto part = [&t](const at::Tensor& buffer, int64_t begin, int64_t height, int64_t width) {
      return buffer.narrow(0, begin, t.matrices * height * width).view({t.matrices, height, width});
    };
    step_tensor(part(params, t.begin, t.rows, t.columns), part(grads, t.begin, t.rows, t.columns),
                t.factored ? part(rows, t.row_moments, t.rows, 1) : at::Tensor(),
                part(columns, t.column_moments, 1, t.columns), step_of(t, step));
  }
}

}  // namespace reference
}  // namespace stretto::kernels
