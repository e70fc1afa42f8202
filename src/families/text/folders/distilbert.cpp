// DistilBERT (Sanh et al. 2019): BERT without segments; labels are read behind a layer with relu.
#include <nlohmann/json.hpp>

#include "families/text/folders/common.h"
#include "interchange/config_reader.h"

namespace stretto::interchange {
namespace {

constexpr double kDistilBertEpsilon = 1e-12;  // of its norms, in no key
constexpr int64_t kMaxDistilBertSize = 1'000'000;

constexpr std::array kDistilBertEncoder{
    NameRow{"distilbert.embeddings.word_embeddings.weight", "encoder.embedding.weight",
            Parts::kWhole},
    NameRow{"distilbert.embeddings.position_embeddings.weight", "encoder.positions.weight",
            Parts::kWhole},
    NameRow{"distilbert.embeddings.LayerNorm", "encoder.embedding_norm"},
    NameRow{"distilbert.transformer.layer.*.attention.{q_lin,k_lin,v_lin}",
            "encoder.layers.*.self_attention.qkv"},
    NameRow{"distilbert.transformer.layer.*.attention.out_lin",
            "encoder.layers.*.self_attention.out"},
    NameRow{"distilbert.transformer.layer.*.sa_layer_norm", "encoder.layers.*.self_residual.norm"},
    NameRow{"distilbert.transformer.layer.*.ffn.lin1", "encoder.layers.*.ffn.up"},
    NameRow{"distilbert.transformer.layer.*.ffn.lin2", "encoder.layers.*.ffn.down"},
    NameRow{"distilbert.transformer.layer.*.output_layer_norm",
            "encoder.layers.*.ffn_residual.norm"},
};
constexpr std::array kDistilBertMaskedTokens{
    NameRow{"vocab_transform", "head.dense"},
    NameRow{"vocab_layer_norm", "head.norm"},
    NameRow{"vocab_projector.bias", "head.bias", Parts::kWhole},
};
constexpr std::array kDistilBertLabels{
    NameRow{"pre_classifier", "head.pooler"},
    NameRow{"classifier", "head.output"},
};
constexpr std::array kDistilBertSpans{NameRow{"qa_outputs", "head.output"}};
constexpr std::array<std::string_view, 1> kDistilBertUnread{"*embeddings.position_ids"};

ModelDescription read_distilbert(const ConfigReader& config) {
  ModelDescription description;
  auto& model = description.model;
  model.preset = "none";
  model.num_layers = config.integer("n_layers", 1, 1000);
  model.d_model = config.integer("dim", 1, 65536);
  model.num_heads = config.integer("n_heads", 1, 1024);
  require_whole_heads(config, "n_heads", model.num_heads, "dim", model.d_model);
  model.ffn_dim = config.integer("hidden_dim", 1, kMaxDistilBertSize);
  model.activation = read_activation(config, "activation");
  model.norm_epsilon = kDistilBertEpsilon;
  model.max_positions = config.integer("max_position_embeddings", 512, 1, kMaxDistilBertSize);
  model.num_segments = 0;
  model.dropout = config.number("dropout", 0.1);
  model.attention_dropout = config.number("attention_dropout", 0.1);
  model.head_dropout = config.number("seq_classif_dropout", 0.2);
  model.init_std = config.number("initializer_range", 0.02);
  model.tie_embeddings = config.flag("tie_word_embeddings", true);
  model.pooling = "cls_relu";
  description.vocab_size = config.integer("vocab_size", 1, 100'000'000);
  return description;
}

void write_distilbert(const ModelDescription& description, nlohmann::ordered_json& config) {
  const auto& model = description.model;
  const auto sizes = models::sizes_of(model);
  config["dim"] = sizes.d_model;
  config["n_layers"] = sizes.num_layers;
  config["n_heads"] = sizes.num_heads;
  config["hidden_dim"] = sizes.ffn_dim;
  config["activation"] = activation_name(model.activation);
  config["max_position_embeddings"] = model.max_positions;
  config["sinusoidal_pos_embds"] = false;
  config["dropout"] = model.dropout;
  config["attention_dropout"] = model.attention_dropout;
  config["seq_classif_dropout"] = model.head_dropout;
  config["qa_dropout"] = model.head_dropout;
  config["initializer_range"] = model.init_std;
}

std::string distilbert_incompatibility(const ModelDescription& description) {
  const auto& model = description.model;
  if (model.num_segments > 0) {
    return "model.num_segments = " + std::to_string(model.num_segments) + ": it has no segments";
  }
  if (model.norm_epsilon != kDistilBertEpsilon) return "model.norm_epsilon: its is 1e-12";
  if (description.head == Head::kLabels && model.pooling != "cls_relu") {
    return "model.pooling = \"" + model.pooling + "\": it reads labels from cls_relu";
  }
  if (description.head == Head::kNone && models::has_pooler(model)) {
    return "model.pooling = \"" + model.pooling + "\": without a head it has no pooler";
  }
  return common_incompatibility(description);
}

}  // namespace

const Architecture kDistilBert{
    .model_type = "distilbert",
    .class_stem = "DistilBert",
    .prefix = "distilbert.",
    .tokenizer = &text::kBertKind,
    .encoder = kDistilBertEncoder,
    .segments = {},
    .pooler = {},
    .heads = {{{}, kDistilBertMaskedTokens, kDistilBertLabels, kDistilBertSpans}},
    .output_matrix = "vocab_projector.weight",
    .output_bias_copy = "",
    .unread = kDistilBertUnread,
    .read_config = &read_distilbert,
    .write_config = &write_distilbert,
    .incompatibility = &distilbert_incompatibility};

}  // namespace stretto::interchange
