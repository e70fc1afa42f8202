#include "nn/embedding.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kernels/kernels.h"
#include "nn/watch.h"

namespace stretto::nn {
namespace {

constexpr int64_t kFirstPosition = 2;

at::Tensor sinusoid_table(int64_t length, int64_t d_model) {
  const int64_t half = d_model / 2;
  const double step = std::log(10000.0) / static_cast<double>(std::max<int64_t>(half - 1, 1));
  const at::Tensor frequencies = (at::arange(half, at::kDouble) * -step).exp();
  const at::Tensor angles =
      at::outer(at::arange(length, at::kDouble) + double{kFirstPosition}, frequencies);
  return at::cat({angles.sin(), angles.cos(), at::zeros({length, d_model - 2 * half}, at::kDouble)},
                 1);
}

}  // namespace

EmbeddingImpl::EmbeddingImpl(const Init& init, int64_t rows, int64_t d_model, int64_t pad) {
  at::Tensor table = init.normal("weight", rows, d_model, 1.0 / std::sqrt(double(d_model)));
  if (pad >= 0) table.select(0, pad).zero_();
  weight = register_parameter("weight", table);
}

at::Tensor EmbeddingImpl::forward(const at::Tensor& ids, const at::Tensor& position) const {
  const double scale = std::sqrt(static_cast<double>(weight.size(1)));
  return watch(*this, kernels::embed(weight, ids, scale, position));
}

at::Tensor Sinusoids::rows(const at::Tensor& positions, int64_t length, const at::Tensor& like) {
  const bool fits = table_.defined() && table_.size(0) >= length &&
                    table_.scalar_type() == like.scalar_type() && table_.device() == like.device();
  if (!fits) {
    // Training reads this table later, so it must not be born in inference mode.
    const c10::InferenceMode normal(false);
    const int64_t room = std::max<int64_t>(256, 2 * length);
    table_ = sinusoid_table(room, d_model_).to(like.device(), like.scalar_type());
  }
  return table_.index_select(0, positions);
}

PositionsImpl::PositionsImpl(const Init& init, const std::string& kind, int64_t d_model,
                             int64_t max_positions)
    : sinusoidal_(kind == "sinusoidal"), sinusoids_(d_model) {
  if (kind != "learned") return;
  weight = register_parameter(
      "weight", init.normal("weight", max_positions, d_model, 1.0 / std::sqrt(double(d_model))));
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
