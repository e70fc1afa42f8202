// Availability, the flat buffers of the arena, and the output loss.
#include <algorithm>

#include "kernels/cuda/bridge.h"
#include "kernels/cuda/cuda.h"

namespace stretto::kernels::cuda {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

constexpr int64_t kLogits = int64_t{1} << 26;  // at a time: 256 MB of fp32

struct LossNode : Function<LossNode> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                               const at::Tensor& targets, double smoothing, int64_t num_classes,
                               bool want_gradient) {
    const at::Tensor classes = weight.slice(0, 0, num_classes);
    const double each = smoothing / static_cast<double>(num_classes - 1);
    const LossScalars scalars{static_cast<float>(each), static_cast<float>(1 - smoothing - each)};
    at::Tensor loss = at::empty({x.size(0)}, x.options().dtype(at::kDouble));
    at::Tensor nll = at::empty_like(loss), dx, dweight;
    if (want_gradient) {
      dx = at::empty_like(x);
      // Blocks are added in fp32: a sum of bf16 sums would lose what later blocks bring.
      dweight = at::zeros(weight.sizes(), weight.options().dtype(at::kFloat));
    }
    const int64_t step = std::max<int64_t>(kLogits / num_classes, 64);
    for (int64_t begin = 0; begin < x.size(0); begin += step) {
      const int64_t end = std::min(begin + step, x.size(0));
      const at::Tensor rows = x.slice(0, begin, end);
      at::Tensor logits = at::mm(rows, classes.t());
      on_stream(x, [&](cudaStream_t stream) {
        loss_rows(rows_of(logits, stream), logits.data_ptr(),
                  targets.const_data_ptr<int64_t>() + begin, loss.data_ptr<double>() + begin,
                  nll.data_ptr<double>() + begin, scalars, want_gradient);
      });
      if (!want_gradient) continue;
      at::Tensor dx_block = dx.slice(0, begin, end), dw = dweight.slice(0, 0, num_classes);
      at::mm_out(dx_block, logits, classes);
      if (x.scalar_type() == at::kFloat)
        dw.addmm_(logits.t(), rows);
      else
        dw.add_(at::mm(logits.t(), rows));
    }
    ctx->saved_data["dx"] = dx;
    ctx->saved_data["dweight"] = dweight.defined() ? dweight.to(weight.scalar_type()) : dweight;
    const at::Tensor nll_sum = nll.sum().to(at::kFloat);
    ctx->mark_non_differentiable({nll_sum});
    return {loss.sum().to(at::kFloat), nll_sum};
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    // A scalar tensor does not widen the type of what it multiplies.
    return {ctx->saved_data["dx"].toTensor() * grads[0],
            ctx->saved_data["dweight"].toTensor() * grads[0],
            {},
            {},
            {},
            {}};
  }
};

}  // namespace

bool available() {
  return c10::cuda::device_count() > 0;
}

bool takes(const at::Tensor& x) {
  const at::ScalarType type = x.scalar_type();
  return x.is_cuda() && (type == at::kFloat || type == at::kHalf || type == at::kBFloat16);
}

CrossEntropy linear_cross_entropy(const at::Tensor& x, const at::Tensor& weight,
                                  const at::Tensor& targets, double smoothing,
                                  int64_t num_classes) {
  const bool want = at::GradMode::is_enabled() && (x.requires_grad() || weight.requires_grad());
  const auto sums =
      LossNode::apply(x.contiguous(), weight.contiguous(),
                      targets.to(x.device(), at::kLong).contiguous(), smoothing, num_classes, want);
  return {sums[0], sums[1].detach()};
}

void adam_step(at::Tensor& params, const at::Tensor& grads, at::Tensor& exp_avg,
               at::Tensor& exp_avg_sq, const AdamStep& step) {
  const double correction1 = 1 - std::pow(step.beta1, static_cast<double>(step.step));
  const double correction2 = 1 - std::pow(step.beta2, static_cast<double>(step.step));
  const AdamScalars scalars{
      static_cast<float>(step.beta1),
      static_cast<float>(step.beta2),
      static_cast<float>(step.grad_scale),
      step.decoupled ? 0.0f : static_cast<float>(step.weight_decay),
      step.decoupled ? static_cast<float>(1 - step.lr * step.weight_decay) : 1.0f,
      static_cast<float>(step.lr / correction1),
      static_cast<float>(1 / std::sqrt(correction2)),
      static_cast<float>(step.epsilon)};
  on_stream(params, [&](cudaStream_t stream) {
    adam(params.data_ptr<float>(), grads.const_data_ptr<float>(), exp_avg.data_ptr<float>(),
         exp_avg_sq.data_ptr<float>(), params.numel(), scalars, stream);
  });
}

double sum_of_squares(const at::Tensor& flat) {
  const at::Tensor values = flat.contiguous();
  const int64_t blocks = (values.numel() + kSumBlock - 1) / kSumBlock;
  at::Tensor sums = at::empty({blocks + 1}, values.options().dtype(at::kDouble));
  double* partial = sums.data_ptr<double>();
  on_stream(values, [&](cudaStream_t stream) {
    sum_of_squares(values.const_data_ptr(), values.numel(), type_of(values), partial,
                   partial + blocks, stream);
  });
  return sums[blocks].item<double>();
}

}  // namespace stretto::kernels::cuda
