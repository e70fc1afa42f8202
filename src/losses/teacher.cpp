#include "losses/teacher.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace stretto::losses {
namespace {

constexpr int64_t kLogitsAtOnce = int64_t{1} << 22;  // 16 MiB in fp32

thread_local OutputRows* recorded_rows = nullptr;
thread_local const std::vector<OutputRows>* scope_teachers = nullptr;

// Rows [begin, end) -> logits [end - begin, C], fp32 or fp64.
at::Tensor logits_of(const OutputRows& output, int64_t begin, int64_t end) {
  const at::Tensor classes = output.matrix.narrow(0, 0, output.num_classes);
  const at::Tensor bias =
      output.bias.defined() ? output.bias.narrow(0, 0, output.num_classes) : output.bias;
  at::Tensor logits = kernels::linear(output.rows.slice(0, begin, end), classes, bias);
  if (logits.scalar_type() != at::kDouble) logits = logits.to(at::kFloat);
  return kernels::softcapped(logits, output.softcap);
}

at::Tensor mean_distribution(const std::vector<OutputRows>& teachers, double temperature,
                             int64_t begin, int64_t end) {
  at::Tensor sum;
  for (const OutputRows& teacher : teachers) {
    const at::Tensor one = at::softmax(logits_of(teacher, begin, end) / temperature, 1);
    sum = sum.defined() ? sum + one : one;
  }
  return teachers.size() == 1 ? sum : sum / static_cast<double>(teachers.size());
}

/// The divergence and its gradients, a block of rows at a time: gradients are made with the loss,
/// as those of kernels::linear_cross_entropy are, so that no logits are kept for backward.
struct DivergenceNode : torch::autograd::Function<DivergenceNode> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& x,
                            const at::Tensor& weight, const std::optional<at::Tensor>& given_bias,
                            int64_t num_classes, double softcap,
                            const std::vector<OutputRows>* teachers, double temperature) {
    const at::Tensor bias = given_bias.value_or(at::Tensor());
    const OutputRows own{x, weight, bias, num_classes, softcap};
    const int64_t rows = x.size(0), at_once = std::max<int64_t>(1, kLogitsAtOnce / num_classes);
    at::Tensor sum = at::zeros({}, x.options().dtype(at::kDouble));
    at::Tensor dx = at::empty_like(x), dweight = at::zeros_like(weight);
    at::Tensor dbias = bias.defined() ? at::zeros_like(bias) : at::Tensor();
    const at::Tensor classes = weight.narrow(0, 0, num_classes);
    for (int64_t begin = 0; begin < rows; begin += at_once) {
      const int64_t end = std::min(begin + at_once, rows);
      const at::Tensor logits = logits_of(own, begin, end);
      const at::Tensor log_p = at::log_softmax(logits / temperature, 1);
      const at::Tensor q =
          mean_distribution(*teachers, temperature, begin, end).to(logits.scalar_type());
      sum += (at::xlogy(q, q) - q * log_p).sum(at::kDouble) * (temperature * temperature);
      at::Tensor dlogits = (log_p.exp() - q) * temperature;
      if (softcap > 0) dlogits = dlogits * (1 - (logits / softcap).square());
      if (dbias.defined()) {
        dbias.narrow(0, 0, num_classes).add_(dlogits.sum(0).to(bias.scalar_type()));
      }
      const at::Tensor d = dlogits.to(x.scalar_type());
      dx.slice(0, begin, end).copy_(at::mm(d, classes.to(x.scalar_type())));
      dweight.narrow(0, 0, num_classes)
          .add_(at::mm(d.t(), x.slice(0, begin, end)).to(weight.scalar_type()));
    }
    ctx->save_for_backward({dx, dweight, dbias});
    return sum.to(x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 const torch::autograd::variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const auto scaled = [&](const at::Tensor& gradient) {
      return gradient.defined() ? gradient * grads[0].to(gradient.scalar_type()) : gradient;
    };
    return {scaled(saved[0]), scaled(saved[1]), scaled(saved[2]), {}, {}, {}, {}};
  }
};

}  // namespace

RecordScope::RecordScope(OutputRows& into) : before_(std::exchange(recorded_rows, &into)) {}

RecordScope::~RecordScope() {
  recorded_rows = before_;
}

OutputRows* RecordScope::current() {
  return recorded_rows;
}

TeacherScope::TeacherScope(const std::vector<OutputRows>& teachers)
    : before_(std::exchange(scope_teachers, &teachers)) {}

TeacherScope::~TeacherScope() {
  scope_teachers = before_;
}

const std::vector<OutputRows>* TeacherScope::current() {
  return scope_teachers;
}

nn::OutputLoss recordable(nn::OutputLoss own) {
  return [own = std::move(own)](const at::Tensor& x, const at::Tensor& weight,
                                const at::Tensor& targets, int64_t num_classes,
                                const at::Tensor& bias, double softcap) {
    OutputRows* into = RecordScope::current();
    if (into == nullptr) return own(x, weight, targets, num_classes, bias, softcap);
    *into = {x, weight, bias, num_classes, softcap};
    const auto real = x.options().dtype(at::kDouble);
    return kernels::CrossEntropy{.loss_sum = at::zeros({}, real),
                                 .nll_sum = at::zeros({}, real),
                                 .token_nll = at::zeros({x.size(0)}, real),
                                 .right_sum = at::zeros({}, x.options().dtype(at::kLong))};
  };
}

at::Tensor divergence_from(const std::vector<OutputRows>& teachers, double temperature,
                           const at::Tensor& x, const at::Tensor& weight, int64_t num_classes,
                           const at::Tensor& bias, double softcap) {
  TORCH_CHECK(!teachers.empty() && temperature > 0,
              "[teacher] needs a teacher and a temperature above 0");
  for (const OutputRows& teacher : teachers) {
    TORCH_CHECK(teacher.rows.defined() && teacher.rows.size(0) == x.size(0) &&
                    teacher.num_classes == num_classes,
                "[teacher] a teacher must have ", x.size(0), " rows and ", num_classes,
                " classes, as the model has");
  }
  // An undefined tensor is no argument of a node.
  return DivergenceNode::apply(x, weight, bias.defined() ? std::optional(bias) : std::nullopt,
                               num_classes, softcap, &teachers, temperature);
}

nn::OutputLoss with_teacher(nn::OutputLoss own, TeacherWeights weights) {
  return [own = std::move(own), weights](const at::Tensor& x, const at::Tensor& weight,
                                         const at::Tensor& targets, int64_t num_classes,
                                         const at::Tensor& bias, double softcap) {
    kernels::CrossEntropy loss = own(x, weight, targets, num_classes, bias, softcap);
    if (!at::GradMode::is_enabled()) return loss;
    const auto* teachers = TeacherScope::current();
    TORCH_CHECK(teachers != nullptr, "[teacher] a loss with gradients needs a TeacherScope");
    const at::Tensor divergence =
        divergence_from(*teachers, weights.temperature, x, weight, num_classes, bias, softcap);
    loss.loss_sum = (1 - weights.weight) * loss.loss_sum +
                    weights.weight * divergence.to(loss.loss_sum.scalar_type());
    return loss;
  };
}

}  // namespace stretto::losses
