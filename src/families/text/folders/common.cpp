#include "families/text/folders/common.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "interchange/config_reader.h"

namespace stretto::interchange {
namespace {

constexpr int64_t kMaxConfigSize = 1'000'000;

}  // namespace

ModelDescription read_bert_config(const ConfigReader& config, int64_t unread_positions) {
  const std::string positions = config.text("position_embedding_type", "absolute");
  if (positions != "absolute") {
    config.refuse("position_embedding_type", "is `" + printable(positions) + "`, not `absolute`");
  }
  for (const char* key : {"is_decoder", "add_cross_attention"}) {
    if (config.flag(key, false)) config.refuse(key, "is true: the model is a decoder");
  }
  ModelDescription description;
  auto& model = description.model;
  model.preset = "none";
  model.num_layers = config.integer("num_hidden_layers", 1, 1000);
  model.d_model = config.integer("hidden_size", 1, 65536);
  model.num_heads = config.integer("num_attention_heads", 1, 1024);
  require_whole_heads(config, "num_attention_heads", model.num_heads, "hidden_size", model.d_model);
  model.ffn_dim = config.integer("intermediate_size", 1, kMaxConfigSize);
  model.activation = read_activation(config, "hidden_act");
  model.norm_epsilon = config.number("layer_norm_eps", 1e-12);
  model.max_positions =
      config.integer("max_position_embeddings", 512, unread_positions + 1, kMaxConfigSize) -
      unread_positions;
  model.num_segments = config.integer("type_vocab_size", 2, 0, 1024);
  model.dropout = config.number("hidden_dropout_prob", 0.1);
  model.attention_dropout = config.number("attention_probs_dropout_prob", 0.1);
  model.head_dropout = config.number("classifier_dropout", model.dropout);
  model.init_std = config.number("initializer_range", 0.02);
  model.tie_embeddings = config.flag("tie_word_embeddings", true);
  description.vocab_size = config.integer("vocab_size", 1, 100'000'000);
  return description;
}

void write_bert_config(const ModelDescription& description, int64_t unread_positions,
                       nlohmann::ordered_json& config) {
  const auto& model = description.model;
  const auto sizes = models::sizes_of(model);
  config["hidden_size"] = sizes.d_model;
  config["num_hidden_layers"] = sizes.num_layers;
  config["num_attention_heads"] = sizes.num_heads;
  config["intermediate_size"] = sizes.ffn_dim;
  config["hidden_act"] = activation_name(model.activation);
  config["layer_norm_eps"] = model.norm_epsilon;
  config["max_position_embeddings"] = model.max_positions + unread_positions;
  config["position_embedding_type"] = "absolute";
  config["type_vocab_size"] = std::max<int64_t>(model.num_segments, 1);
  config["hidden_dropout_prob"] = model.dropout;
  config["attention_probs_dropout_prob"] = model.attention_dropout;
  config["classifier_dropout"] = model.head_dropout;
  config["initializer_range"] = model.init_std;
}

std::string common_incompatibility(const ModelDescription& description) {
  const auto& model = description.model;
  if (model.norm != "post")
    return "model.norm = \"" + model.norm + "\": it normalises behind parts";
  if (model.norm_layer != "layer_norm") {
    return "model.norm_layer = \"" + model.norm_layer + "\": it has LayerNorm alone";
  }
  if (model.positions != "learned") {
    return "model.positions = \"" + model.positions + "\": its positions are learned";
  }
  if (const auto sizes = models::sizes_of(model);
      models::head_width_of(model) * sizes.num_heads != sizes.d_model) {
    return "model.head_dim = " + std::to_string(model.head_dim) +
           ": its heads have d_model / num_heads columns each";
  }
  if (activation_name(model.activation).empty()) {
    return "model.activation = \"" + model.activation + "\": it has no gated units";
  }
  return "";
}

}  // namespace stretto::interchange
