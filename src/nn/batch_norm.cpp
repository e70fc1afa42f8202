#include "nn/batch_norm.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include <utility>
#include <vector>

#include "base/error.h"
#include "nn/watch.h"

namespace stretto::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// All dimensions but the channels'.
std::vector<int64_t> other_dims(const at::Tensor& x) {
  std::vector<int64_t> dims = {0};
  for (int64_t dim = 2; dim < x.dim(); ++dim) dims.push_back(dim);
  return dims;
}

/// [C] as [1, C, 1…], to stand beside x.
at::Tensor beside(const at::Tensor& per_channel, const at::Tensor& x) {
  std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
  shape[1] = x.size(1);
  return per_channel.view(shape);
}

/// Values of one channel in this process's batch.
int64_t values_per_channel(const at::Tensor& x) {
  return x.size(1) == 0 ? 0 : x.numel() / x.size(1);
}

/// Sums over ranks of a flat tensor, in double.
at::Tensor summed(const at::Tensor& values, const SumOverRanks& sum) {
  at::Tensor numbers = values.to(at::kCPU, at::kDouble).contiguous().clone();
  sum({numbers.data_ptr<double>(), static_cast<size_t>(numbers.numel())});
  return numbers;
}

struct Statistics {
  at::Tensor mean, var;  ///< [C], double, on the CPU; the variance biased
  double count = 0;      ///< values per channel
};

/// Each rank's mean and variance are taken in the dtype of x by the library's stable algorithm;
/// only their combination is a difference of squares, and that is in double. Without values there
/// is the count alone.
Statistics statistics_over_ranks(const at::Tensor& x, const SumOverRanks& sum) {
  const int64_t channels = x.size(1), local = values_per_channel(x);
  const auto wide = at::TensorOptions().dtype(at::kDouble);
  at::Tensor sums = at::zeros({channels}, wide), squares = at::zeros({channels}, wide);
  if (local > 0) {
    const auto [var, mean] = at::var_mean(x, other_dims(x), /*correction=*/0);
    const at::Tensor centre = mean.to(at::kCPU, at::kDouble);
    sums = centre * local;
    squares = (var.to(at::kCPU, at::kDouble) + centre * centre) * local;
  }
  const at::Tensor count = at::full({1}, static_cast<double>(local), wide);
  const at::Tensor all = summed(at::cat({sums, squares, count}), sum);
  Statistics result;
  result.count = all[2 * channels].item<double>();
  if (result.count == 0) return result;
  result.mean = all.narrow(0, 0, channels) / result.count;
  const at::Tensor mean_square = all.narrow(0, channels, channels) / result.count;
  result.var = (mean_square - result.mean * result.mean).clamp_min(0);
  return result;
}

/// So that a function can wait in an autograd context.
struct KeptFunction : torch::CustomClassHolder {
  explicit KeptFunction(SumOverRanks sum) : sum_over_ranks(std::move(sum)) {}
  SumOverRanks sum_over_ranks;
};

/// y = (x - mean) * scale * gamma + beta with scale = 1 / sqrt(var + epsilon), and the gradient of
/// x through mean and var too, which are functions of every rank's x:
///
///     dx = gamma * scale * (dy - sum(dy) / n - xhat * sum(dy * xhat) / n)     sums over ranks
///
/// The gradients of gamma and beta are this rank's part; the gradient reducer adds them up.
struct SynchronisedNode : torch::autograd::Function<SynchronisedNode> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, const Statistics& statistics, double epsilon,
                            const SumOverRanks& sum) {
    const at::Tensor mean = statistics.mean.to(x.device(), x.scalar_type());
    const at::Tensor scale = (statistics.var + epsilon).rsqrt().to(x.device(), x.scalar_type());
    ctx->save_for_backward({x, weight, mean, scale});
    ctx->saved_data["count"] = statistics.count;
    ctx->saved_data["sum"] = c10::IValue::make_capsule(c10::make_intrusive<KeptFunction>(sum));
    return (x - beside(mean, x)) * beside(scale * weight, x) + beside(bias, x);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &mean = saved[2], &scale = saved[3];
    const at::Tensor& dy = grads[0];
    const at::Tensor normal = (x - beside(mean, x)) * beside(scale, x);
    const at::Tensor dbias = dy.sum(other_dims(x)), dweight = (dy * normal).sum(other_dims(x));
    const auto kept = ctx->saved_data["sum"].toCapsule();
    const auto& sum = static_cast<const KeptFunction&>(*kept).sum_over_ranks;
    const at::Tensor means =
        (summed(at::cat({dbias, dweight}), sum) / ctx->saved_data["count"].toDouble())
            .to(x.device(), x.scalar_type());
    const at::Tensor mean_dy = beside(means.narrow(0, 0, x.size(1)), x);
    const at::Tensor mean_dy_normal = beside(means.narrow(0, x.size(1), x.size(1)), x);
    const at::Tensor dx = (dy - mean_dy - normal * mean_dy_normal) * beside(scale * weight, x);
    return {dx, dweight, dbias, {}, {}, {}};
  }
};

}  // namespace

BatchNormImpl::BatchNormImpl(const Init& init, int64_t channels, const BatchNormOptions& options)
    : NormImpl(init, channels, options.zero_gamma), options_(options) {
  running_mean = register_buffer("running_mean", init.buffer(channels, 0.0));
  running_var = register_buffer("running_var", init.buffer(channels, 1.0));
  if (!options.learns_gamma) weight.set_requires_grad(false);
}

at::Tensor BatchNormImpl::forward_to(const NormEnd& end, const at::Tensor& x) const {
  TORCH_CHECK(x.dim() >= 2 && x.size(1) == weight.size(0), "[batch_norm] x must be [N, ",
              weight.size(0), "] or [N, ", weight.size(0), ", T...], got ", x.sizes());
  // A mean over thousands of values does not fit into eight bits of mantissa.
  const bool narrow = x.scalar_type() == at::kHalf || x.scalar_type() == at::kBFloat16;
  const at::Tensor wide = narrow ? x.to(at::kFloat) : x;
  const bool by_batch = !goes_by_running();
  if (by_batch && !sum_over_ranks_ && x.dim() == 4 && x.numel() > 0 &&
      has_variance(static_cast<double>(values_per_channel(x)))) {
    const at::Tensor planes = normalise_planes(wide, end);
    return watch(*this, narrow ? planes.to(x.scalar_type()) : planes);
  }
  at::Tensor y;
  if (by_batch && sum_over_ranks_) {
    y = normalise_over_ranks(wide);
  } else if (by_batch && x.numel() > 0) {  // without rows there is nothing to learn from
    y = normalise_by_batch(wide);
  } else {
    y = normalise_by_running(wide);
  }
  if (end.residual.defined()) y = y.add_(end.residual);
  y = kernels::bent_plane(std::move(y), end.end);
  return watch(*this, narrow ? y.to(x.scalar_type()) : y);
}

at::Tensor BatchNormImpl::normalise_by_running(const at::Tensor& x) const {
  const auto dtype = x.scalar_type();
  return at::batch_norm(x, weight.to(dtype), bias.to(dtype), running_mean.to(dtype),
                        running_var.to(dtype), /*training=*/false, options_.momentum,
                        options_.epsilon, at::globalContext().userEnabledCuDNN());
}

/// Whether so many values of a channel can be normalised by themselves. Throws where nothing else
/// is left.
bool BatchNormImpl::has_variance(double values) const {
  if (values > 1) return true;
  if (options_.single_by_running) return false;
  throw Error(ExitCode::kBadData,
              "batch norm: a batch with a single value in each channel has no variance",
              "make micro-batches larger (data.max_tokens or data.max_samples), or synchronise the "
              "statistics over processes");
}

BatchNormImpl::Map BatchNormImpl::running_map() const {
  const at::Tensor scale = (running_var + options_.epsilon).rsqrt() * weight;
  return {.scale = scale, .shift = bias - running_mean * scale};
}

at::Tensor BatchNormImpl::normalise_by_batch(const at::Tensor& x) const {
  if (!has_variance(static_cast<double>(values_per_channel(x)))) return normalise_by_running(x);
  const auto dtype = x.scalar_type();
  // With a momentum of 1 libtorch's "running" statistics are the batch's.
  const BatchMoments moments{.mean = at::zeros(weight.sizes(), x.options()),
                             .var = at::ones(weight.sizes(), x.options())};
  const at::Tensor y = at::batch_norm(x, weight.to(dtype), bias.to(dtype), moments.mean,
                                      moments.var, /*training=*/true, /*momentum=*/1,
                                      options_.epsilon, at::globalContext().userEnabledCuDNN());
  keep(moments);
  return y;
}

at::Tensor BatchNormImpl::normalise_planes(const at::Tensor& x, const NormEnd& end) const {
  kernels::PlaneMoments moments;
  const at::Tensor y = kernels::plane_norm(
      x, weight, bias, {.epsilon = options_.epsilon, .end = end.end, .residual = end.residual},
      moments);
  keep({.mean = moments.mean, .var = moments.var});
  return y;
}

at::Tensor BatchNormImpl::normalise_over_ranks(const at::Tensor& x) const {
  Statistics statistics;
  {
    const at::NoGradGuard no_grad;
    statistics = statistics_over_ranks(x, sum_over_ranks_);
  }
  if (!has_variance(statistics.count)) return normalise_by_running(x);
  {
    const at::NoGradGuard no_grad;
    const double n = statistics.count;
    keep(
        {.mean = statistics.mean.to(running_mean.device(), running_mean.scalar_type()),
         .var =
             (statistics.var * (n / (n - 1))).to(running_var.device(), running_var.scalar_type())});
  }
  return SynchronisedNode::apply(x, weight.to(x.scalar_type()), bias.to(x.scalar_type()),
                                 statistics, options_.epsilon, sum_over_ranks_);
}

void BatchNormImpl::keep(const BatchMoments& moments) const {
  if (take_moments_) return take_moments_(moments);
  const auto move = [&](const at::Tensor& running, const at::Tensor& batch) {
    running.mul_(1 - options_.momentum).add_(batch.to(running.scalar_type()), options_.momentum);
  };
  const at::NoGradGuard no_grad;
  move(running_mean, moments.mean);
  move(running_var, moments.var);
}

std::vector<BatchNormImpl*> batch_norms(torch::nn::Module& model) {
  std::vector<BatchNormImpl*> norms;
  const auto visit = [&](torch::nn::Module& module) {
    if (auto* norm = module.as<BatchNormImpl>()) norms.push_back(norm);
  };
  visit(model);  // by itself, as it need not be owned by a shared_ptr
  for (const auto& module : model.modules(/*include_self=*/false)) visit(*module);
  return norms;
}

at::Tensor pass_without_rows(torch::nn::Module& model) {
  at::Tensor all;
  for (const BatchNormImpl* norm : batch_norms(model)) {
    const at::Tensor none = norm->weight.detach().new_empty({0, norm->weight.size(0)});
    const at::Tensor sum = norm->forward(none).sum();
    all = all.defined() ? all + sum : sum;
  }
  return all;
}

}  // namespace stretto::nn
