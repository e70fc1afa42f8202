// Llama's form (Touvron et al. 2023, arXiv:2302.13971), and what Mistral, Qwen2 and Qwen3 make of
// it, as LlamaForCausalLM and its likes have it.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "families/language_model/folders/causal_class.h"
#include "families/language_model/folders/rope.h"
#include "interchange/config_reader.h"

namespace stretto::interchange {
namespace {

using models::CausalTransformerOptions;

constexpr std::array kLlamaNames{
    NameRow{"model.embed_tokens.weight", "decoder.embedding.weight", Parts::kWhole},
    NameRow{"model.norm.weight", "decoder.final_norm.weight", Parts::kWhole},
    NameRow{"model.layers.*.input_layernorm.weight", "decoder.layers.*.self_residual.norm.weight",
            Parts::kWhole},
    NameRow{"model.layers.*.self_attn.{q_proj,k_proj,v_proj}.weight",
            "decoder.layers.*.self_attention.qkv.weight", Parts::kWhole},
    NameRow{"model.layers.*.self_attn.o_proj.weight", "decoder.layers.*.self_attention.out.weight",
            Parts::kWhole},
    NameRow{"model.layers.*.post_attention_layernorm.weight",
            "decoder.layers.*.ffn_residual.norm.weight", Parts::kWhole},
    NameRow{"model.layers.*.mlp.{gate_proj,up_proj}.weight", "decoder.layers.*.ffn.up.weight",
            Parts::kWhole},
    NameRow{"model.layers.*.mlp.down_proj.weight", "decoder.layers.*.ffn.down.weight",
            Parts::kWhole},
};
constexpr std::array kLlamaQkvBias{
    NameRow{"model.layers.*.self_attn.{q_proj,k_proj,v_proj}.bias",
            "decoder.layers.*.self_attention.qkv.bias", Parts::kWhole},
};
constexpr std::array kLlamaOutBias{
    NameRow{"model.layers.*.self_attn.o_proj.bias", "decoder.layers.*.self_attention.out.bias",
            Parts::kWhole},
};
constexpr std::array kLlamaHeadNorms{
    NameRow{"model.layers.*.self_attn.q_norm.weight",
            "decoder.layers.*.self_attention.q_norm.weight", Parts::kWhole},
    NameRow{"model.layers.*.self_attn.k_norm.weight",
            "decoder.layers.*.self_attention.k_norm.weight", Parts::kWhole},
};
// Angles of rotary positions, which folders of early versions store.
constexpr std::array<std::string_view, 1> kLlamaUnread{"*.rotary_emb.inv_freq"};

// The feed-forward part has a gate.
struct LlamaActivation {
  std::string_view theirs, ours;
};
constexpr std::array<LlamaActivation, 3> kLlamaActivations{
    {{"silu", "swiglu"}, {"swish", "swiglu"}, {"gelu", "geglu"}}};

/// Where the classes differ.
struct LlamaForm {
  const CausalClass* its;
  const char* biases;  ///< without `attention_bias`
  bool reads_biases;   ///< `attention_bias` may be true: all maps of attention have one
  bool qk_norm;
  int64_t head_dim;  ///< where config.json does not say it; 0 = hidden_size / num_attention_heads
  enum class Window : uint8_t { kNone, kAll, kSwitched } window;
};

const LlamaForm& llama_form_of(const CausalClass& its) {
  using Window = LlamaForm::Window;
  static const std::array<LlamaForm, 4> kForms{{
      {&kLlama, "none", true, false, 0, Window::kNone},
      {&kMistral, "none", false, false, 0, Window::kAll},
      {&kQwen2, "qkv", false, false, 0, Window::kSwitched},
      {&kQwen3, "none", true, true, 128, Window::kSwitched},
  }};
  return *std::find_if(kForms.begin(), kForms.end(),
                       [&](const LlamaForm& form) { return form.its == &its; });
}

std::string read_llama_activation(const ConfigReader& config) {
  const std::string name = config.text("hidden_act", "silu");
  for (const auto& known : kLlamaActivations) {
    if (known.theirs == name) return std::string(known.ours);
  }
  config.refuse("hidden_act", "is `" + printable(name) + "`; silu and gelu are known");
}

void read_llama_heads(const LlamaForm& form, const ConfigReader& config,
                      CausalTransformerOptions& model) {
  const int64_t heads = config.integer("num_attention_heads", 1, kMaxCausalHeads);
  const int64_t kv_heads = config.integer("num_key_value_heads", heads, 1, kMaxCausalHeads);
  if (heads % kv_heads != 0) {
    config.refuse("num_key_value_heads", "is " + std::to_string(kv_heads) +
                                             ", which does not divide num_attention_heads " +
                                             std::to_string(heads));
  }
  int64_t width = config.integer("head_dim", form.head_dim, 0, kMaxCausalWidth);
  if (width == 0) {
    require_whole_heads(config, "num_attention_heads", heads, "hidden_size", model.d_model);
    width = model.d_model / heads;
  }
  if (width % 2 != 0) {
    config.refuse("head_dim", "is " + std::to_string(width) +
                                  ": rotary positions turn pairs, so that it must be even");
  }
  model.num_heads = heads;
  model.num_kv_heads = kv_heads == heads ? 0 : kv_heads;
  model.head_dim = width * heads == model.d_model ? 0 : width;
}

/// Which layers have a window, by `layer_types`; nothing where the key is not there.
std::optional<std::vector<bool>> read_layer_types(const ConfigReader& config, int64_t layers) {
  if (!config.has("layer_types")) return std::nullopt;
  const auto& list = config.json().at("layer_types");
  if (!list.is_array() || std::ssize(list) != layers) {
    config.refuse("layer_types",
                  "is no list with a word for each of " + std::to_string(layers) + " layers");
  }
  std::vector<bool> is_windowed;
  for (const auto& one : list) {
    const bool is_full = one == "full_attention";
    if (!is_full && one != "sliding_attention") {
      config.refuse("layer_types",
                    "has a layer that is neither full_attention nor sliding_attention");
    }
    is_windowed.push_back(!is_full);
  }
  return is_windowed;
}

/// The layers of Qwen with a window: all from `max_window_layers` on.
std::vector<bool> read_window_layers(const ConfigReader& config, int64_t layers) {
  const int64_t first = config.integer("max_window_layers", 28, 0, kMaxCausalLayers);
  std::vector<bool> is_windowed;
  for (int64_t layer = 0; layer < layers; ++layer) is_windowed.push_back(layer >= first);
  return is_windowed;
}

/// Every n-th layer, or none, attends to all tokens: full_attention_every.
std::optional<int64_t> period_of_full(const std::vector<bool>& is_windowed) {
  const auto first = std::find(is_windowed.begin(), is_windowed.end(), false);
  if (first == is_windowed.end()) return 0;
  const int64_t period = first - is_windowed.begin() + 1;
  for (size_t layer = 0; layer < is_windowed.size(); ++layer) {
    const bool is_full = (static_cast<int64_t>(layer) + 1) % period == 0;
    if (is_windowed[layer] == is_full) return std::nullopt;
  }
  return period;
}

void read_llama_windows(const LlamaForm& form, const ConfigReader& config,
                        CausalTransformerOptions& model) {
  using Window = LlamaForm::Window;
  if (form.window == Window::kNone) return;
  const bool is_on = form.window == Window::kAll || config.flag("use_sliding_window", false);
  const auto& json = config.json();
  const bool is_null = json.contains("sliding_window") && json.at("sliding_window").is_null();
  if (!is_on || is_null) return;
  const int64_t window = config.integer("sliding_window", 4096, 1, kMaxCausalPositions);
  auto layers = read_layer_types(config, model.num_layers);
  if (!layers) {
    layers = form.window == Window::kAll
                 ? std::vector<bool>(static_cast<size_t>(model.num_layers), true)
                 : read_window_layers(config, model.num_layers);
  }
  if (std::find(layers->begin(), layers->end(), true) == layers->end()) return;
  const auto period = period_of_full(*layers);
  if (!period) {
    config.refuse(config.has("layer_types") ? "layer_types" : "max_window_layers",
                  "gives some layers a window: all have one here, or all but every n-th");
  }
  if (*period > 0 && form.window == Window::kAll) {
    config.refuse("layer_types", "gives some layers a window: in this class all have one");
  }
  model.sliding_window = window;
  model.full_attention_every = *period;
}

CausalTransformerOptions read_llama(const CausalClass& its, const ConfigReader& config) {
  const LlamaForm& form = llama_form_of(its);
  CausalTransformerOptions model;
  model.preset = "none";
  model.num_layers = config.integer("num_hidden_layers", 1, kMaxCausalLayers);
  model.d_model = config.integer("hidden_size", 1, kMaxCausalWidth);
  read_llama_heads(form, config, model);
  model.ffn_dim = config.integer("intermediate_size", 1, kMaxCausalSize);
  model.norm_layer = "rms_norm";
  model.norm_epsilon = config.number("rms_norm_eps", 1e-6);
  model.activation = read_llama_activation(config);
  model.biases = form.biases;
  if (form.reads_biases && config.flag("attention_bias", false)) model.biases = "all";
  if (config.flag("mlp_bias", false)) {
    config.refuse("mlp_bias", "is true: a feed-forward part with a gate has no biases here");
  }
  model.qk_norm = form.qk_norm;
  model.positions = "rotary";
  model.max_positions = config.integer("max_position_embeddings", 1, kMaxCausalPositions);
  model.rope = read_rope(config, model.max_positions);
  read_llama_windows(form, config, model);
  model.dropout = 0;
  model.attention_dropout = config.number("attention_dropout", 0);
  model.init_std = config.number("initializer_range", 0.02);
  model.tie_embeddings = config.flag("tie_word_embeddings", false);
  return model;
}

void write_llama_windows(const LlamaForm& form, const CausalTransformerOptions& model,
                         nlohmann::ordered_json& config) {
  using Window = LlamaForm::Window;
  if (form.window == Window::kNone) return;
  const bool is_on = model.sliding_window > 0;
  config["sliding_window"] = is_on ? nlohmann::ordered_json(model.sliding_window) : nullptr;
  if (form.window == Window::kAll) return;
  config["use_sliding_window"] = is_on;
  config["max_window_layers"] = is_on ? 0 : models::sizes_of(model).num_layers;
  if (!is_on) return;
  auto types = nlohmann::ordered_json::array();
  for (int64_t layer = 0; layer < models::sizes_of(model).num_layers; ++layer) {
    types.push_back(model.window_of(layer) > 0 ? "sliding_attention" : "full_attention");
  }
  config["layer_types"] = types;
}

void write_llama(const CausalClass& its, const CausalTransformerOptions& model,
                 nlohmann::ordered_json& config) {
  const LlamaForm& form = llama_form_of(its);
  const auto sizes = models::sizes_of(model);
  config["hidden_size"] = sizes.d_model;
  config["intermediate_size"] = sizes.ffn_dim;
  config["num_hidden_layers"] = sizes.num_layers;
  config["num_attention_heads"] = sizes.num_heads;
  config["num_key_value_heads"] = model.num_kv_heads > 0 ? model.num_kv_heads : sizes.num_heads;
  config["head_dim"] = model.head_dim > 0 ? model.head_dim : sizes.d_model / sizes.num_heads;
  config["hidden_act"] = model.activation == "geglu" ? "gelu" : "silu";
  config["max_position_embeddings"] = model.max_positions;
  config["rms_norm_eps"] = model.norm_epsilon;
  write_rope(model.rope, config);
  if (form.reads_biases) config["attention_bias"] = model.biases == "all";
  if (&its == &kLlama) config["mlp_bias"] = false;
  write_llama_windows(form, model, config);
  config["attention_dropout"] = model.attention_dropout;
}

std::string llama_incompatibility(const CausalClass& its, const CausalTransformerOptions& model) {
  const LlamaForm& form = llama_form_of(its);
  if (model.positions != "rotary") {
    return "model.positions = \"" + model.positions + "\": its positions are rotary";
  }
  if (model.norm_layer != "rms_norm") {
    return "model.norm_layer = \"" + model.norm_layer + "\": it has rms_norm";
  }
  if (!model.is_gated()) {
    return "model.activation = \"" + model.activation + "\": its feed-forward parts have a gate";
  }
  if (model.qk_norm != form.qk_norm) {
    return model.qk_norm ? "model.qk_norm = true: its queries and keys have no norms"
                         : "model.qk_norm = false: its queries and keys have norms";
  }
  const bool has_biases =
      model.biases == form.biases || (form.reads_biases && model.biases == "all");
  if (!has_biases) {
    return "model.biases = \"" + model.biases + "\": it has " +
           (form.biases == std::string_view("qkv") ? "those of queries, keys and values"
                                                   : "none, or those of attention");
  }
  if (model.sliding_window > 0 && form.window == LlamaForm::Window::kNone) {
    return "model.sliding_window: it attends to all earlier tokens";
  }
  if (model.sliding_window > 0 && model.full_attention_every > 0 &&
      form.window == LlamaForm::Window::kAll) {
    return "model.full_attention_every: all of its layers have the window";
  }
  return "";
}

constexpr size_t kQkvParts = 3;

/// Rows of queries, keys and values.
std::vector<int64_t> qkv_rows(const CausalTransformerOptions& model) {
  const auto sizes = models::sizes_of(model);
  const int64_t width = model.head_dim > 0 ? model.head_dim : sizes.d_model / sizes.num_heads;
  const int64_t kv = width * (model.num_kv_heads > 0 ? model.num_kv_heads : sizes.num_heads);
  return {width * sizes.num_heads, kv, kv};
}

std::vector<NamePair> llama_names(const CausalTransformerOptions& model) {
  const int64_t layers = models::sizes_of(model).num_layers;
  auto names = expand(kLlamaNames, layers);
  const auto add = [&](std::span<const NameRow> rows) {
    for (auto& pair : expand(rows, layers)) names.push_back(std::move(pair));
  };
  if (model.biases != "none") add(kLlamaQkvBias);
  if (model.biases == "all") add(kLlamaOutBias);
  if (model.qk_norm) add(kLlamaHeadNorms);
  for (NamePair& pair : names) {
    if (pair.theirs.size() == kQkvParts) pair.part_rows = qkv_rows(model);
  }
  return names;
}

constexpr CausalClass llama_class(std::string_view model_type, std::string_view name) {
  return {.model_type = model_type,
          .name = name,
          .prefix = "model.",
          .unread = kLlamaUnread,
          .read = &read_llama,
          .write = &write_llama,
          .incompatibility = &llama_incompatibility,
          .names = &llama_names};
}

}  // namespace

const CausalClass kLlama = llama_class("llama", "LlamaForCausalLM");
const CausalClass kMistral = llama_class("mistral", "MistralForCausalLM");
const CausalClass kQwen2 = llama_class("qwen2", "Qwen2ForCausalLM");
const CausalClass kQwen3 = llama_class("qwen3", "Qwen3ForCausalLM");

}  // namespace stretto::interchange
