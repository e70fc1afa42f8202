#include "models/transformer_layers.h"

#include <optional>
#include <utility>

#include "nn/batch_norm.h"

namespace stretto::models {

std::shared_ptr<nn::NormImpl> make_norm(const nn::Init& init, const TransformerPart& options,
                                        int64_t d_model, bool zero_gamma) {
  if (options.norm_layer == "batch_norm") {
    const nn::BatchNormOptions batch{.momentum = 0.05, .epsilon = 1e-4, .zero_gamma = zero_gamma};
    return std::make_shared<nn::BatchNormImpl>(init, d_model, batch);
  }
  const std::optional<double> epsilon = options.form.norm_epsilon;
  if (options.norm_layer == "rms_norm")
    return std::make_shared<nn::RmsNormImpl>(init, d_model, zero_gamma, epsilon.value_or(1e-6));
  return std::make_shared<nn::LayerNormImpl>(init, d_model, zero_gamma, epsilon.value_or(1e-5),
                                             options.form.norm_bias);
}

nn::SelfAttention make_self_attention(const nn::Init& init, const TransformerPart& options,
                                      int64_t d_model, bool causal) {
  const bool relative = options.positions == "shaw";
  const LayerForm& form = options.form;
  return nn::SelfAttention(
      init, nn::AttentionOptions{.d_model = d_model,
                                 .num_heads = options.stack.num_heads,
                                 .rotary = options.positions == "rotary",
                                 .num_kv_heads = options.stack.num_kv_heads,
                                 .max_distance = relative ? options.max_distance : 0,
                                 .causal = causal,
                                 .head_dim = options.head_dim(),
                                 .qkv_bias = form.qkv_bias,
                                 .out_bias = form.other_biases,
                                 .qk_norm = form.qk_norm,
                                 .norm_epsilon = form.norm_epsilon.value_or(1e-6),
                                 .rope = form.rope,
                                 .limits = {.window = causal ? form.sliding_window : 0,
                                            .softcap = form.attention_softcap}});
}

nn::FeedForward make_feed_forward(const nn::Init& init, const TransformerPart& options,
                                  int64_t d_model) {
  return nn::FeedForward(init, d_model, options.stack.ffn_dim, options.activation,
                         options.form.other_biases);
}

ResidualImpl::ResidualImpl(const nn::Init& init, const TransformerPart& options, int64_t d_model)
    : ResidualImpl(init, options.norm,
                   make_norm(init.child("norm"), options, d_model, options.zero_gamma), d_model) {}

ResidualImpl::ResidualImpl(const nn::Init& init, const std::string& place,
                           std::shared_ptr<nn::NormImpl> own_norm, int64_t d_model)
    : place_(place == "pre"        ? Place::kPre
             : place == "res_post" ? Place::kResPost
                                   : Place::kPost) {
  norm = register_module("norm", std::move(own_norm));
  adapter = nn::make_adapter(*this, init, d_model);
}

StackShell::StackShell(torch::nn::Module& owner, const PartSetup& setup,
                       const TransformerPart& options, const EmbeddingKind& kind)
    : embedding(owner, setup, kind) {
  positions = owner.register_module(
      "positions", nn::Positions(setup.init.child("positions"), options.positions, setup.d_model,
                                 options.max_positions, embedding.first_rows()));
  if (options.norm != "post") {
    final_norm = owner.register_module(
        "final_norm", make_norm(setup.init.child("final_norm"), options, setup.d_model, false));
  }
}

at::Tensor StackShell::embed(const at::Tensor& ids, const at::Tensor& places, int64_t max_length,
                             const kernels::Dropout& dropout) {
  return embed(
      nn::PackedRows{
          .ids = ids, .positions = places, .offsets = {.values = {}, .max_length = max_length}},
      dropout);
}

at::Tensor StackShell::embed(const nn::PackedRows& rows, const kernels::Dropout& dropout) {
  const at::Tensor position =
      positions->forward(rows.positions, rows.offsets.max_length, embedding.like(rows));
  return kernels::dropout(embedding.forward(rows, position), dropout);
}

at::Tensor StackShell::finish(const at::Tensor& x) const {
  return final_norm ? final_norm->forward(x) : x;
}

}  // namespace stretto::models
