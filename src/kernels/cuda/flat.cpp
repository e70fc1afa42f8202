// Availability, memory, the flat buffers of the arena, and the output loss.
#include <c10/cuda/CUDACachingAllocator.h>

#include <algorithm>
#include <optional>

#include "kernels/cast.h"
#include "kernels/cuda/bridge.h"
#include "kernels/cuda/cuda.h"

namespace stretto::kernels::cuda {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

constexpr int64_t kLogits = int64_t{1} << 26;  // at a time: 256 MB of fp32

/// The logits' slopes lie in [-1, 1]; see kernels/loss/fused_loss.cpp.
constexpr double kSlopeScale = 32768;

/// The products of the loss: in the type of x, or of fp32 rows in a half type with fp32 sums.
class Projection {
 public:
  Projection(const at::Tensor& x, const at::Tensor& classes)
      : compute_(x.scalar_type() == at::kFloat ? ComputeScope::current() : Compute::kFp32),
        tf32_(compute_ == Compute::kTf32),
        x_(is_half(compute_) ? x.to(half_type(compute_)) : x),
        classes_(is_half(compute_) ? classes.to(half_type(compute_)) : classes) {}

  Compute compute() const { return compute_; }

  /// The logits of rows [begin, end): rounded to the half type, and returned in fp32 unless the
  /// slopes can take their place in the half type: slopes of bf16 need no scale, and without a bias
  /// nothing adds them up.
  /// @param bias  [V], may be undefined
  at::Tensor logits(int64_t begin, int64_t end, const at::Tensor& bias) const {
    at::Tensor all = at::mm(x_.slice(0, begin, end), classes_.t());
    if (bias.defined()) all.add_(bias.to(all.scalar_type()));
    const bool stays = compute_ == Compute::kBf16 && !bias.defined();
    return is_half(compute_) && !stays ? all.to(at::kFloat) : all;
  }
  void gradients(const at::Tensor& slopes, int64_t begin, int64_t end, at::Tensor& dx,
                 at::Tensor& dweight) const {
    const at::Tensor rows = x_.slice(0, begin, end);
    if (is_half(compute_)) {
      const at::Tensor narrow =
          (compute_ == Compute::kFp16 ? slopes * kSlopeScale : slopes).to(half_type(compute_));
      dx.copy_(at::mm(narrow, classes_, at::kFloat));
      dweight.add_(at::mm(narrow.t(), rows, at::kFloat));
      return;
    }
    at::mm_out(dx, slopes, classes_);
    if (rows.scalar_type() == at::kFloat)
      dweight.addmm_(slopes.t(), rows);
    else
      dweight.add_(at::mm(slopes.t(), rows));
  }

 private:
  Compute compute_;
  cast::Tf32Guard tf32_;
  at::Tensor x_, classes_;
};

/// What a batch of rows costs; gradients where they are wanted, in fp32.
struct Losses {
  at::Tensor loss, nll;  ///< fp64 [N], of each token
  at::Tensor right;      ///< int64 [N]
  at::Tensor dx, dweight, dbias;
  Compute compute;
};

Losses losses_of(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets,
                 double smoothing, int64_t num_classes, const at::Tensor& bias,
                 bool want_gradient) {
  const Projection projection(x, weight.slice(0, 0, num_classes));
  const double each = smoothing / static_cast<double>(num_classes - 1);
  const LossScalars scalars{static_cast<float>(each), static_cast<float>(1 - smoothing - each)};
  Losses out{.loss = at::empty({x.size(0)}, x.options().dtype(at::kDouble)),
             .nll = {},
             .right = at::empty({x.size(0)}, x.options().dtype(at::kLong)),
             .dx = {},
             .dweight = {},
             .dbias = {},
             .compute = projection.compute()};
  out.nll = at::empty_like(out.loss);
  if (want_gradient) {
    out.dx = at::empty_like(x);
    // Blocks are added in fp32: a sum of bf16 sums would lose what later blocks bring.
    out.dweight = at::zeros(weight.sizes(), weight.options().dtype(at::kFloat));
    if (bias.defined()) out.dbias = at::zeros(bias.sizes(), bias.options().dtype(at::kFloat));
  }
  const at::Tensor shift = bias.defined() ? bias.slice(0, 0, num_classes) : bias;
  const int64_t step = std::max<int64_t>(kLogits / num_classes, 64);
  for (int64_t begin = 0; begin < x.size(0); begin += step) {
    const int64_t end = std::min(begin + step, x.size(0));
    at::Tensor logits = projection.logits(begin, end, shift);
    on_stream(x, [&](cudaStream_t stream) {
      loss_rows(rows_of(logits, stream), logits.data_ptr(),
                targets.const_data_ptr<int64_t>() + begin,
                {out.loss.data_ptr<double>() + begin, out.nll.data_ptr<double>() + begin,
                 out.right.data_ptr<int64_t>() + begin},
                scalars, want_gradient);
    });
    if (!want_gradient) continue;
    if (out.dbias.defined())
      out.dbias.slice(0, 0, num_classes).add_(logits.sum(0, /*keepdim=*/false, at::kFloat));
    at::Tensor dx_block = out.dx.slice(0, begin, end), dw = out.dweight.slice(0, 0, num_classes);
    projection.gradients(logits, begin, end, dx_block, dw);
  }
  return out;
}

struct LossNode : Function<LossNode> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                               const std::optional<at::Tensor>& bias, const at::Tensor& targets,
                               double smoothing, int64_t num_classes) {
    const Losses losses =
        losses_of(x, weight, targets, smoothing, num_classes, bias.value_or(at::Tensor()), true);
    ctx->saved_data["compute"] = static_cast<int64_t>(losses.compute);
    ctx->saved_data["dx"] = losses.dx;
    ctx->saved_data["dweight"] = losses.dweight.to(weight.scalar_type());
    ctx->saved_data["biased"] = bias.has_value();
    if (bias) ctx->saved_data["dbias"] = losses.dbias.to(bias->scalar_type());
    const at::Tensor nll_sum = losses.nll.sum().to(at::kFloat), right_sum = losses.right.sum();
    ctx->mark_non_differentiable({nll_sum, right_sum});
    return {losses.loss.sum().to(at::kFloat), nll_sum, right_sum};
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto compute = static_cast<Compute>(ctx->saved_data["compute"].toInt());
    // Rounded at the scale that the loss came back with. A scalar tensor does not widen the type of
    // what it multiplies.
    const auto scaled = [&](const char* name) {
      const at::Tensor slope = ctx->saved_data[name].toTensor();
      if (!is_half(compute)) return slope * grads[0];
      const at::Tensor factor = compute == Compute::kFp16 ? grads[0] / kSlopeScale : grads[0];
      return (slope * factor).to(half_type(compute)).to(at::kFloat);
    };
    at::Tensor dbias;
    if (ctx->saved_data["biased"].toBool()) dbias = ctx->saved_data["dbias"].toTensor() * grads[0];
    return {scaled("dx"), scaled("dweight"), dbias, {}, {}, {}};
  }
};

}  // namespace

bool is_built() {
  return true;
}

bool available() {
  return c10::cuda::device_count() > 0;
}

bool has_fast_bf16(at::Device device) {
  return available() && at::cuda::getDeviceProperties(device.index())->major >= 8;
}

bool has_fast_fp16(at::Device device) {
  return available() && at::cuda::getDeviceProperties(device.index())->major >= 7;
}

std::optional<int64_t> peak_memory_bytes(at::Device device) {
  if (!device.is_cuda()) return std::nullopt;
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(device.index());
  return stats.allocated_bytes[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)]
      .peak;
}

std::optional<int64_t> total_memory_bytes(at::Device device) {
  if (!device.is_cuda() || !available()) return std::nullopt;
  return static_cast<int64_t>(at::cuda::getDeviceProperties(device.index())->totalGlobalMem);
}

bool takes(const at::Tensor& x) {
  const at::ScalarType type = x.scalar_type();
  return x.is_cuda() && (type == at::kFloat || type == at::kHalf || type == at::kBFloat16);
}

CrossEntropy linear_cross_entropy(const at::Tensor& x, const at::Tensor& weight,
                                  const at::Tensor& targets, double smoothing, int64_t num_classes,
                                  const at::Tensor& bias) {
  const at::Tensor shift = bias.defined() ? bias.contiguous() : bias;
  const bool want = at::GradMode::is_enabled() && (x.requires_grad() || weight.requires_grad() ||
                                                   (bias.defined() && bias.requires_grad()));
  const at::Tensor ids = targets.to(x.device(), at::kLong).contiguous();
  if (!want) {
    const Losses losses =
        losses_of(x.contiguous(), weight.contiguous(), ids, smoothing, num_classes, shift, false);
    return {losses.loss.sum().to(at::kFloat),
            losses.nll.sum().to(at::kFloat),
            losses.nll,
            {},
            losses.right.sum()};
  }
  const auto sums =
      LossNode::apply(x.contiguous(), weight.contiguous(),
                      shift.defined() ? std::optional<at::Tensor>(shift) : std::nullopt, ids,
                      smoothing, num_classes);
  return {.loss_sum = sums[0], .nll_sum = sums[1].detach(), .right_sum = sums[2].detach()};
}

namespace {

// The sum of each block, then their total.
at::Tensor block_sums(const at::Tensor& flat) {
  const at::Tensor values = flat.contiguous();
  const int64_t blocks = (values.numel() + kSumBlock - 1) / kSumBlock;
  at::Tensor sums = at::empty({blocks + 1}, values.options().dtype(at::kDouble));
  double* partial = sums.data_ptr<double>();
  on_stream(values, [&](cudaStream_t stream) {
    sum_of_squares(values.const_data_ptr(), values.numel(), type_of(values), partial,
                   partial + blocks, stream);
  });
  return sums;
}

}  // namespace

double sum_of_squares(const at::Tensor& flat) {
  const at::Tensor sums = block_sums(flat);
  return sums[sums.numel() - 1].item<double>();
}

std::vector<double> sum_of_squares_blocks(const at::Tensor& flat) {
  static_assert(kSumOfSquaresBlock % kSumBlock == 0);
  const at::Tensor sums = block_sums(flat).cpu();
  const double* first = sums.const_data_ptr<double>();
  return {first, first + sums.numel() - 1};
}

}  // namespace stretto::kernels::cuda
