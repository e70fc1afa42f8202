// GPT-2 (Radford et al. 2019) as GPT2LMHeadModel has it.
#include <array>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "families/language_model/folders/causal_class.h"
#include "interchange/config_reader.h"

namespace stretto::interchange {
namespace {

using models::CausalTransformerOptions;

// The maps of its Conv1D are stored as [in, out].
constexpr auto kOfConv1D = Parts::kWeightAndBias;
constexpr std::array kGpt2Names{
    NameRow{"transformer.wte.weight", "decoder.embedding.weight", Parts::kWhole},
    NameRow{"transformer.wpe.weight", "decoder.positions.weight", Parts::kWhole},
    NameRow{"transformer.ln_f", "decoder.final_norm"},
    NameRow{"transformer.h.*.ln_1", "decoder.layers.*.self_residual.norm"},
    NameRow{"transformer.h.*.attn.c_attn", "decoder.layers.*.self_attention.qkv", kOfConv1D,
            /*skips_rows=*/false, /*transposed=*/true},
    NameRow{"transformer.h.*.attn.c_proj", "decoder.layers.*.self_attention.out", kOfConv1D,
            /*skips_rows=*/false, /*transposed=*/true},
    NameRow{"transformer.h.*.ln_2", "decoder.layers.*.ffn_residual.norm"},
    NameRow{"transformer.h.*.mlp.c_fc", "decoder.layers.*.ffn.up", kOfConv1D, /*skips_rows=*/false,
            /*transposed=*/true},
    NameRow{"transformer.h.*.mlp.c_proj", "decoder.layers.*.ffn.down", kOfConv1D,
            /*skips_rows=*/false,
            /*transposed=*/true},
};
// The causal mask, which folders of early versions store.
constexpr std::array<std::string_view, 2> kGpt2Unread{"*h.*.attn.bias", "*h.*.attn.masked_bias"};

struct Gpt2Activation {
  std::string_view theirs, ours;
};
// The first of each of ours is the one that is written.
constexpr std::array<Gpt2Activation, 9> kGpt2Activations{{{"gelu_new", "gelu_tanh"},
                                                          {"gelu_pytorch_tanh", "gelu_tanh"},
                                                          {"gelu_fast", "gelu_tanh"},
                                                          {"gelu", "gelu"},
                                                          {"gelu_python", "gelu"},
                                                          {"relu", "relu"},
                                                          {"relu2", "relu_squared"},
                                                          {"silu", "silu"},
                                                          {"swish", "silu"}}};

std::string read_gpt2_activation(const ConfigReader& config) {
  const std::string name = config.text("activation_function", "gelu_new");
  for (const auto& known : kGpt2Activations) {
    if (known.theirs == name) return std::string(known.ours);
  }
  config.refuse("activation_function",
                "is `" + printable(name) + "`; gelu_new, gelu, relu, relu2 and silu are known");
}

std::string_view gpt2_activation_of(const CausalTransformerOptions& model) {
  for (const auto& known : kGpt2Activations) {
    if (known.ours == model.activation) return known.theirs;
  }
  return "";
}

void refuse_other_gpt2_attention(const ConfigReader& config) {
  if (!config.flag("scale_attn_weights", true)) {
    config.refuse("scale_attn_weights", "is false: scores are divided by a root here");
  }
  if (config.flag("scale_attn_by_inverse_layer_idx", false)) {
    config.refuse("scale_attn_by_inverse_layer_idx", "is true: all layers have one scale here");
  }
  if (config.flag("add_cross_attention", false)) {
    config.refuse("add_cross_attention", "is true: a language model reads one text");
  }
}

CausalTransformerOptions read_gpt2(const CausalClass& /*its*/, const ConfigReader& config) {
  refuse_other_gpt2_attention(config);
  CausalTransformerOptions model;  // its defaults are GPT-2's form
  model.preset = "none";
  model.num_layers = config.integer("n_layer", 12, 1, kMaxCausalLayers);
  model.d_model = config.integer("n_embd", 768, 1, kMaxCausalWidth);
  model.num_heads = config.integer("n_head", 12, 1, kMaxCausalHeads);
  require_whole_heads(config, "n_head", model.num_heads, "n_embd", model.d_model);
  model.ffn_dim = config.integer("n_inner", 4 * model.d_model, 1, kMaxCausalSize);
  model.activation = read_gpt2_activation(config);
  model.norm_epsilon = config.number("layer_norm_epsilon", 1e-5);
  const char* positions = config.has("n_positions") ? "n_positions" : "n_ctx";
  model.max_positions = config.integer(positions, 1024, 1, kMaxCausalPositions);
  model.dropout = config.number("resid_pdrop", 0.1);
  model.attention_dropout = config.number("attn_pdrop", 0.1);
  model.init_std = config.number("initializer_range", 0.02);
  model.tie_embeddings = config.flag("tie_word_embeddings", true);
  return model;
}

void write_gpt2(const CausalClass& /*its*/, const CausalTransformerOptions& model,
                nlohmann::ordered_json& config) {
  const auto sizes = models::sizes_of(model);
  config["n_embd"] = sizes.d_model;
  config["n_layer"] = sizes.num_layers;
  config["n_head"] = sizes.num_heads;
  config["n_inner"] = sizes.ffn_dim;
  config["n_positions"] = model.max_positions;
  config["activation_function"] = gpt2_activation_of(model);
  config["layer_norm_epsilon"] = model.norm_epsilon;
  config["embd_pdrop"] = model.dropout;
  config["resid_pdrop"] = model.dropout;
  config["attn_pdrop"] = model.attention_dropout;
}

std::string gpt2_incompatibility(const CausalClass& /*its*/,
                                 const CausalTransformerOptions& model) {
  const auto sizes = models::sizes_of(model);
  if (model.positions != "learned") {
    return "model.positions = \"" + model.positions + "\": its positions are learned";
  }
  if (model.norm_layer != "layer_norm") {
    return "model.norm_layer = \"" + model.norm_layer + "\": it has layer norms";
  }
  if (!model.norm_bias) return "model.norm_bias = false: its norms have biases";
  if (gpt2_activation_of(model).empty()) {
    return "model.activation = \"" + model.activation + "\": its feed-forward parts have no gate";
  }
  if (model.biases != "all") {
    return "model.biases = \"" + model.biases + "\": all of its maps have one";
  }
  if (model.qk_norm) return "model.qk_norm = true: its queries and keys have no norms";
  if (model.sliding_window > 0) return "model.sliding_window: it attends to all earlier tokens";
  if (model.num_kv_heads > 0 && model.num_kv_heads != sizes.num_heads) {
    return "model.num_kv_heads = " + std::to_string(model.num_kv_heads) +
           ": each of its heads has keys of its own";
  }
  if (model.head_dim > 0 && model.head_dim * sizes.num_heads != sizes.d_model) {
    return "model.head_dim = " + std::to_string(model.head_dim) +
           ": its heads have equal parts of "
           "the width";
  }
  return "";
}

std::vector<NamePair> gpt2_names(const CausalTransformerOptions& model) {
  return expand(kGpt2Names, models::sizes_of(model).num_layers);
}

}  // namespace

const CausalClass kGpt2{.model_type = "gpt2",
                        .name = "GPT2LMHeadModel",
                        .prefix = "transformer.",
                        .unread = kGpt2Unread,
                        .read = &read_gpt2,
                        .write = &write_gpt2,
                        .incompatibility = &gpt2_incompatibility,
                        .names = &gpt2_names};

}  // namespace stretto::interchange
