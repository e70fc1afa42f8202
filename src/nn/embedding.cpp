#include "nn/embedding.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/custom_class.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "kernels/kernels.h"
#include "nn/watch.h"

namespace stretto::nn {
namespace {

constexpr int64_t kFirstPosition = 2;

at::Tensor marian_table(int64_t length, int64_t d_model) {
  const int64_t sines = d_model - d_model / 2;
  const double step = 2 * std::log(10000.0) / static_cast<double>(d_model);
  const at::Tensor angles =
      at::outer(at::arange(length, at::kDouble), (at::arange(sines, at::kDouble) * -step).exp());
  return at::cat({angles.sin(), angles.narrow(1, 0, d_model / 2).cos()}, 1);
}

at::Tensor fairseq_table(int64_t length, int64_t d_model) {
  const int64_t half = d_model / 2;
  const double step = std::log(10000.0) / static_cast<double>(std::max<int64_t>(half - 1, 1));
  const at::Tensor frequencies = (at::arange(half, at::kDouble) * -step).exp();
  const at::Tensor angles =
      at::outer(at::arange(length, at::kDouble) + double{kFirstPosition}, frequencies);
  return at::cat({angles.sin(), angles.cos(), at::zeros({length, d_model - 2 * half}, at::kDouble)},
                 1);
}

/// So that it can wait in an autograd context.
struct KeptRows : torch::CustomClassHolder {
  explicit KeptRows(std::shared_ptr<RowGradients> to) : rows(std::move(to)) {}
  std::shared_ptr<RowGradients> rows;
};

struct RowLookup : torch::autograd::Function<RowLookup> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& /*anchor*/,
                            const at::Tensor& table, const at::Tensor& ids, double scale,
                            const std::optional<at::Tensor>& position,
                            const std::shared_ptr<RowGradients>& to) {
    ctx->save_for_backward({ids});
    ctx->saved_data["scale"] = scale;
    ctx->saved_data["rows"] = c10::IValue::make_capsule(c10::make_intrusive<KeptRows>(to));
    ctx->saved_data["position"] = position && position->requires_grad();
    return kernels::embed(table, ids, scale, position.value_or(at::Tensor()));
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 const torch::autograd::variable_list& grads) {
    const auto kept = ctx->saved_data["rows"].toCapsule();
    static_cast<const KeptRows&>(*kept).rows->add(ctx->get_saved_variables()[0],
                                                  grads[0] * ctx->saved_data["scale"].toDouble());
    const bool position = ctx->saved_data["position"].toBool();
    return {{}, {}, {}, {}, position ? grads[0] : at::Tensor(), {}};
  }
};

}  // namespace

EmbeddingImpl::EmbeddingImpl(const Init& init, int64_t rows, int64_t d_model, int64_t pad,
                             const std::optional<InitRule>& first_rows) {
  at::Tensor table =
      init.matrix("weight", rows, d_model, first_rows.value_or(normal_of_width(d_model)));
  if (pad >= 0) table.select(0, pad).zero_();
  weight = register_parameter("weight", table);
}

at::Tensor EmbeddingImpl::forward(const at::Tensor& ids, const at::Tensor& position,
                                  const at::Tensor& dropped, RowScale scale) const {
  if (!dropped.defined()) return watch(*this, look_up(ids, position, scale));
  const at::Tensor words = look_up(ids, {}, scale).masked_fill(dropped.unsqueeze(1), 0);
  return watch(*this, position.defined() ? words + position.to(words.scalar_type()) : words);
}

at::Tensor EmbeddingImpl::look_up(const at::Tensor& ids, const at::Tensor& position,
                                  RowScale by) const {
  const double scale =
      by == RowScale::kSqrtWidth ? std::sqrt(static_cast<double>(weight.size(1))) : 1.0;
  const bool apart = rows_ && at::GradMode::is_enabled() && weight.requires_grad();
  return apart ? looked_up_apart(ids, scale, position)
               : kernels::embed(weight, ids, scale, position);
}

at::Tensor EmbeddingImpl::looked_up_apart(const at::Tensor& ids, double scale,
                                          const at::Tensor& position) const {
  rows_->looked_up(ids);
  // What autograd follows into the lookup, since the table itself is not to be followed.
  const at::Tensor anchor =
      at::zeros({}, weight.options().requires_grad(false)).requires_grad_(true);
  // Autograd takes no undefined tensors, but optional ones.
  const auto place = position.defined() ? std::optional(position) : std::nullopt;
  return RowLookup::apply(anchor, weight.detach(), ids, scale, place, rows_);
}

at::Tensor Sinusoids::rows(const at::Tensor& positions, int64_t length, const at::Tensor& like) {
  const std::lock_guard lock(mutex_);
  const bool fits = table_.defined() && table_.size(0) >= length &&
                    table_.scalar_type() == like.scalar_type() && table_.device() == like.device();
  if (!fits) {
    // Training reads this table later, so it must not be born in inference mode.
    const c10::InferenceMode normal(false);
    const int64_t room = std::max<int64_t>(256, 2 * length);
    const at::Tensor table = kind_ == SinusoidTable::kMarian ? marian_table(room, d_model_)
                                                             : fairseq_table(room, d_model_);
    table_ = table.to(like.device(), like.scalar_type());
  }
  return table_.index_select(0, positions);
}

PositionsImpl::PositionsImpl(const Init& init, const std::string& kind, int64_t d_model,
                             int64_t max_positions, const std::optional<InitRule>& first_rows)
    : sinusoidal_(kind == "sinusoidal" || kind == "marian"),
      sinusoids_(d_model, kind == "marian" ? SinusoidTable::kMarian : SinusoidTable::kFairseq) {
  if (kind != "learned") return;
  weight = register_parameter("weight", init.matrix("weight", max_positions, d_model,
                                                    first_rows.value_or(normal_of_width(d_model))));
}

at::Tensor PositionsImpl::forward(const at::Tensor& positions, int64_t length,
                                  const at::Tensor& like) {
  if (sinusoidal_) return sinusoids_.rows(positions, length, like);
  if (!weight.defined()) return {};
  if (length > weight.size(0)) {
    throw Error(ExitCode::kBadData,
                "a sequence of " + std::to_string(length) + " tokens does not fit the " +
                    std::to_string(weight.size(0)) + " learned positions of the model",
                "filter or cut longer lines, or train with a larger model.max_positions");
  }
  return watch(*this, kernels::embed(weight, positions, 1.0, {}));
}

}  // namespace stretto::nn
