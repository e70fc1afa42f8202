#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "kernels/fused_common.h"
#include "kernels/loss/forward_slopes.h"
#include "kernels/loss/fused_projection.h"
#include "kernels/loss/sampled_loss.h"

namespace stretto::kernels::fused {
namespace {

/// What N rows cost.
struct Sampled {
  double loss = 0;
  ForwardSlopes slopes;
};

/// A row's own logit stands behind those of the samples. Where the target is among these too, that
/// one counts nothing.
struct Columns {
  const at::Tensor ids;  ///< rising
  int64_t own;           ///< where the own logit stands: S

  int64_t sample_of(int64_t target) const {
    const int64_t *begin = ids.const_data_ptr<int64_t>(), *end = begin + own;
    const int64_t* found = std::lower_bound(begin, end, target);
    return found != end && *found == target ? found - begin : -1;
  }
};

/// Losses of a block of rows and, in place of the logits [n, S + 1], their slopes.
double rows_of_loss(at::Tensor& logits, const at::Tensor& own_logits, const at::Tensor& targets,
                    const Columns& columns) {
  const int64_t rows = logits.size(0), classes = logits.size(1);
  std::vector<double> losses(static_cast<size_t>(rows));
  float* from = logits.data_ptr<float>();
  const float* own = own_logits.const_data_ptr<float>();
  const int64_t* target = targets.const_data_ptr<int64_t>();
  at::parallel_for(0, rows, 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      float* row = from + i * classes;
      if (const int64_t sample = columns.sample_of(target[i]); sample >= 0)
        row[sample] = -std::numeric_limits<float>::infinity();
      row[columns.own] = own[i];
      losses[static_cast<size_t>(i)] =
          cpu::table().loss_row(row, {classes, columns.own, 0, 1}, true).nll;
    }
  });
  double sum = 0;
  for (const double loss : losses) sum += loss;
  return sum;
}

/// Row targets[i] of dweight += factors[i] times row i of x. Rows may come twice, and are added in
/// their order.
void add_own(at::Tensor& dweight, const at::Tensor& targets, const at::Tensor& factors,
             const at::Tensor& x) {
  const int64_t width = x.size(1);
  const int64_t* target = targets.const_data_ptr<int64_t>();
  const float *factor = factors.const_data_ptr<float>(), *from = x.const_data_ptr<float>();
  float* to = dweight.data_ptr<float>();
  for (int64_t i = 0; i < x.size(0); ++i) {
    float* row = to + target[i] * width;
    for (int64_t j = 0; j < width; ++j) row[j] += factor[i] * from[i * width + j];
  }
}

Sampled losses_of(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets,
                  const SampledClasses& sampled, const at::Tensor& bias) {
  const at::Tensor& ids = sampled.ids;
  const Columns columns{.ids = ids, .own = ids.size(0)};
  // A row of zeroes behind the samples makes room for a row's own logit, and takes no slope to x.
  const at::Tensor nothing = at::zeros({1, x.size(1)}, x.options());
  const at::Tensor table = at::cat({weight.index_select(0, ids), nothing});
  const at::Tensor shift_of_samples =
      bias.defined() ? sampled.log_weights + bias.index_select(0, ids) : sampled.log_weights;
  const at::Tensor shift = at::cat({shift_of_samples, at::zeros({1}, x.options())});
  const Projection projection(
      table, {.rows = x.size(0), .slope_scale = ForwardSlopes::kScale, .backward = true});
  Sampled out;
  auto& [dx, dweight, dbias] = out.slopes;
  dx = is_half(ComputeScope::current()) ? at::zeros_like(x) : at::empty_like(x);
  dweight = at::zeros_like(weight);
  if (bias.defined()) dbias = at::zeros_like(bias);
  at::Tensor dtable = at::zeros_like(table);
  const int64_t most = std::min(kLossRows, x.size(0));
  const at::Tensor buffer = at::empty({most, table.size(0)}, x.options());
  for (int64_t begin = 0; begin < x.size(0); begin += kLossRows) {
    const int64_t end = std::min(begin + kLossRows, x.size(0));
    const at::Tensor rows = x.slice(0, begin, end), target = targets.slice(0, begin, end);
    const at::Tensor own_weights = weight.index_select(0, target);
    at::Tensor own = (rows * own_weights).sum(1);
    if (bias.defined()) own.add_(bias.index_select(0, target));
    at::Tensor logits = buffer.slice(0, 0, end - begin);
    projection.logits(rows, shift, logits);
    out.loss += rows_of_loss(logits, own, target, columns);
    if (dbias.defined()) {
      dbias.index_add_(0, ids, gemm::column_sums(logits).slice(0, 0, columns.own));
      dbias.index_add_(0, target, logits.select(1, columns.own));
    }
    at::Tensor dx_block = dx.slice(0, begin, end);
    projection.gradients(logits, rows, dx_block, dtable);
    const at::Tensor factors = logits.select(1, columns.own).contiguous();  // scaled as dx is
    dx_block.addcmul_(factors.unsqueeze(1), own_weights);
    add_own(dweight, target, factors, rows);
  }
  dweight.index_add_(0, ids, dtable.slice(0, 0, columns.own));
  return out;
}

struct SampledLossNode : torch::autograd::Function<SampledLossNode> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, const at::Tensor& targets,
                            const at::Tensor& ids, const at::Tensor& log_weights) {
    const Sampled losses = losses_of(x, weight, targets, {.ids = ids, .log_weights = log_weights},
                                     bias.value_or(at::Tensor()));
    losses.slopes.keep(ctx);
    return scalar_of(losses.loss);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto slopes = ForwardSlopes::of_backward(ctx, grads[0]);
    return {slopes.dx, slopes.dweight, slopes.dbias, {}, {}, {}};
  }
};

}  // namespace

CrossEntropy sampled_cross_entropy(const at::Tensor& x, const at::Tensor& weight,
                                   const at::Tensor& targets, const SampledClasses& sampled,
                                   const at::Tensor& bias) {
  const at::Tensor loss = SampledLossNode::apply(
      x.contiguous(), weight.contiguous(),
      bias.defined() ? std::optional<at::Tensor>(bias.contiguous()) : std::nullopt,
      targets.contiguous(), sampled.ids.contiguous(), sampled.log_weights.contiguous());
  return {.loss_sum = loss, .nll_sum = loss.detach()};
}

}  // namespace stretto::kernels::fused
