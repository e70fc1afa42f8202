#include "models/causal_bodies.h"

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "models/causal_recurrent.h"
#include "models/causal_recurrent_steps.h"
#include "models/decoders/transformer.h"
#include "models/memory.h"

namespace stretto::models {
namespace {

/// A decoder without memory.
class TransformerBody : public CausalBody {
 public:
  TransformerBody(const CausalTransformerOptions& options, const PartSetup& setup)
      : decoder_(std::make_shared<TransformerDecoder>(part_of(options), setup)) {}

  std::shared_ptr<torch::nn::Module> module() const override { return decoder_; }
  CausalPass forward(const nn::PackedRows& input, const std::vector<at::Tensor>& /*carry*/,
                     const ForwardContext& context) override {
    return {.rows = decoder_->forward(input, {}, context), .carry = {}};
  }
  std::unique_ptr<StepDecoder> start(int64_t sources, int64_t lanes_per_source) override {
    return decoder_->start(no_memory(sources, embedding()->weight.device()), lanes_per_source);
  }
  nn::Embedding embedding() const override { return decoder_->embedding(); }
  int64_t width() const override { return decoder_->width(); }
  int64_t max_length() const override { return decoder_->max_length(); }
  double operations(double length) const override { return decoder_->operations(length, 0); }

 private:
  std::shared_ptr<TransformerDecoder> decoder_;
};

class RecurrentBody : public CausalBody {
 public:
  RecurrentBody(const CausalLstmModelOptions& options, const PartSetup& setup)
      : stack_(std::make_shared<CausalRecurrent>(options, setup, options.rows_width())) {}

  std::shared_ptr<torch::nn::Module> module() const override { return stack_; }
  CausalPass forward(const nn::PackedRows& input, const std::vector<at::Tensor>& carry,
                     const ForwardContext& context) override {
    CausalRecurrentPass pass = stack_->forward(input, carry, context);
    return {.rows = std::move(pass.rows),
            .carry = std::move(pass.state),
            .regulariser = std::move(pass.regulariser)};
  }
  std::unique_ptr<StepDecoder> start(int64_t sources, int64_t lanes_per_source) override {
    return stack_->start(sources, lanes_per_source);
  }
  std::vector<CarryShape> carry_shapes() const override {
    std::vector<CarryShape> shapes;
    for (const RecurrentStateShape& state : stack_->state_shapes()) {
      shapes.push_back({.name = state.name, .width = state.width});
    }
    return shapes;
  }
  nn::Embedding embedding() const override { return stack_->embedding(); }
  int64_t width() const override { return stack_->width(); }
  int64_t max_length() const override { return std::numeric_limits<int64_t>::max(); }
  double operations(double /*length*/) const override { return stack_->operations(); }

 private:
  std::shared_ptr<CausalRecurrent> stack_;
};

/// Builds the chosen stack: one overload for each of them, and a forgotten one does not compile.
struct MakeBody {
  const PartSetup& setup;

  std::unique_ptr<CausalBody> operator()(const CausalTransformerOptions& options) const {
    PartSetup part = setup;
    part.embedding_scale = options.embedding_scale;
    return std::make_unique<TransformerBody>(options, part);
  }
  std::unique_ptr<CausalBody> operator()(const CausalLstmModelOptions& options) const {
    return std::make_unique<RecurrentBody>(options, setup);
  }
};

nn::InitRule normal_of(double deviation) {
  return {.distribution = nn::Distribution::kNormal, .number = deviation};
}

}  // namespace

std::unique_ptr<CausalBody> make_causal_body(const CausalModelOptions& options,
                                             const PartSetup& setup) {
  return options.visit(MakeBody{setup});
}

nn::InitRule first_rows_of(const CausalModelOptions& options) {
  if (options.is<CausalTransformerOptions>()) {
    return normal_of(options.as<CausalTransformerOptions>().init_std);
  }
  const auto& lstm = options.as<CausalLstmModelOptions>();
  return lstm.embedding_kind().first_rows("none", lstm.d_model);
}

nn::Init with_rules_of(const CausalModelOptions& options, const nn::Init& root) {
  if (!options.is<CausalTransformerOptions>()) return root;
  const auto& transformer = options.as<CausalTransformerOptions>();
  const nn::Init ruled = root.with_linear_rule(normal_of(transformer.init_std));
  if (!transformer.scale_residual_init) return ruled;
  // Each layer adds two parts to the residual stream (Radford et al. 2019, section 2.3).
  const auto parts = 2 * static_cast<double>(sizes_of(transformer).num_layers);
  return ruled.with_residual_rule(normal_of(transformer.init_std / std::sqrt(parts)));
}

TransformerPart part_of(const CausalTransformerOptions& options) {
  const CausalSizes sizes = sizes_of(options);
  LayerStyle style;
  style.norm = options.norm;
  style.norm_layer = options.norm_layer;
  style.parallel_residual = options.parallel_residual;
  style.activation = options.activation;
  style.positions = options.positions;
  style.max_positions = options.max_positions;
  style.dropout = options.dropout;
  style.attention_dropout = options.attention_dropout;
  style.activation_dropout = options.activation_dropout;
  const StackOptions stack{.num_layers = sizes.num_layers,
                           .num_heads = sizes.num_heads,
                           .ffn_dim = sizes.ffn_dim,
                           .layer_drop = options.layer_drop,
                           .num_kv_heads = options.num_kv_heads};
  const LayerForm form{.head_dim = options.head_dim,
                       .norm_epsilon = options.norm_epsilon,
                       .norm_bias = options.norm_bias,
                       .qkv_bias = options.biases != "none",
                       .other_biases = options.biases == "all",
                       .qk_norm = options.qk_norm,
                       .rope = options.rope,
                       .sliding_window = options.sliding_window,
                       .full_attention_every = options.full_attention_every,
                       .attention_softcap = options.attention_softcap};
  return {style, stack, form};
}

}  // namespace stretto::models
