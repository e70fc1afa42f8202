#include "models/text_stack.h"

#include <ATen/ops/cat.h>

#include <utility>

#include "models/causal_bodies.h"
#include "models/encoders/bert.h"
#include "nn/lora.h"

namespace stretto::models {
namespace {

// Rows that predict no token are not regularised as if they did.
CausalModelOptions without_regulariser(CausalModelOptions options) {
  if (options.is<CausalLstmModelOptions>()) {
    auto& lstm = options.as<CausalLstmModelOptions>();
    lstm.activation_reg = lstm.temporal_reg = 0;
  }
  return options;
}

class BertStack final : public TextStack {
 public:
  BertStack(const BertOptions& options, const PartSetup& setup)
      : encoder_(std::make_shared<BertEncoder>(options, setup)),
        max_length_(max_length_of(options)) {}

  std::shared_ptr<torch::nn::Module> module() const override { return encoder_; }
  at::Tensor forward(const nn::PackedRows& input, const ForwardContext& context) override {
    return encoder_->forward(input, context).keys;
  }
  at::Tensor forward_of(const at::Tensor& wanted, const nn::PackedRows& input,
                        const ForwardContext& context) override {
    return encoder_->forward_of(wanted, input, context);
  }
  at::Tensor last_states(const nn::PackedRows& /*input*/,
                         const ForwardContext& /*context*/) override {
    TORCH_CHECK(false, "[text_stack] an encoder ends in no state");
    return {};
  }
  nn::Embedding embedding() const override { return encoder_->embedding(); }
  int64_t width() const override { return encoder_->width(); }
  int64_t max_length() const override { return max_length_; }
  double operations(double length) const override { return encoder_->operations(length); }
  double operations_of_unwanted() const override { return encoder_->operations_of_unwanted(); }

 private:
  std::shared_ptr<BertEncoder> encoder_;
  int64_t max_length_;
};

class CausalStack final : public TextStack {
 public:
  CausalStack(const CausalModelOptions& options, const PartSetup& setup)
      : body_(make_causal_body(without_regulariser(options), setup)) {}

  std::shared_ptr<torch::nn::Module> module() const override { return body_->module(); }
  at::Tensor forward(const nn::PackedRows& input, const ForwardContext& context) override {
    const nn::LoraDropoutScope scope(context.dropout(input.row_keys));
    return body_->forward(input, /*carry=*/{}, context).rows;
  }
  at::Tensor forward_of(const at::Tensor& wanted, const nn::PackedRows& input,
                        const ForwardContext& context) override {
    const at::Tensor rows = forward(input, context);
    return wanted.defined() ? rows.index_select(0, wanted) : rows;
  }
  at::Tensor last_states(const nn::PackedRows& input, const ForwardContext& context) override {
    const auto shapes = body_->carry_shapes();
    TORCH_CHECK(shapes.size() >= 2 && shapes.back().name.starts_with("c."),
                "[text_stack] only an LSTM ends in a hidden and a cell state");
    const nn::LoraDropoutScope scope(context.dropout(input.row_keys));
    const CausalPass pass = body_->forward(input, /*carry=*/{}, context);
    return at::cat({pass.carry[pass.carry.size() - 2], pass.carry.back()}, 1);
  }
  nn::Embedding embedding() const override { return body_->embedding(); }
  int64_t width() const override { return body_->width(); }
  int64_t max_length() const override { return body_->max_length(); }
  double operations(double length) const override { return body_->operations(length); }
  double operations_of_unwanted() const override { return 0; }

 private:
  std::unique_ptr<CausalBody> body_;
};

}  // namespace

std::unique_ptr<TextStack> make_text_stack(const BertOptions& options, const PartSetup& setup) {
  return std::make_unique<BertStack>(options, setup);
}

std::unique_ptr<TextStack> make_text_stack(const CausalModelOptions& options,
                                           const PartSetup& setup) {
  return std::make_unique<CausalStack>(options, setup);
}

}  // namespace stretto::models
