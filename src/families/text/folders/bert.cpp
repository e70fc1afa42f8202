// BERT (Devlin et al. 2018), and MiniLM and others of its architecture.
#include <nlohmann/json.hpp>

#include "families/text/folders/common.h"

namespace stretto::interchange {
namespace {

constexpr std::array kBertEncoder{
    NameRow{"bert.embeddings.word_embeddings.weight", "encoder.embedding.weight", Parts::kWhole},
    NameRow{"bert.embeddings.position_embeddings.weight", "encoder.positions.weight",
            Parts::kWhole},
    NameRow{"bert.embeddings.LayerNorm", "encoder.embedding_norm"},
    NameRow{"bert.encoder.layer.*.attention.self.{query,key,value}",
            "encoder.layers.*.self_attention.qkv"},
    NameRow{"bert.encoder.layer.*.attention.output.dense", "encoder.layers.*.self_attention.out"},
    NameRow{"bert.encoder.layer.*.attention.output.LayerNorm",
            "encoder.layers.*.self_residual.norm"},
    NameRow{"bert.encoder.layer.*.intermediate.dense", "encoder.layers.*.ffn.up"},
    NameRow{"bert.encoder.layer.*.output.dense", "encoder.layers.*.ffn.down"},
    NameRow{"bert.encoder.layer.*.output.LayerNorm", "encoder.layers.*.ffn_residual.norm"},
};
constexpr std::array kBertSegments{NameRow{"bert.embeddings.token_type_embeddings.weight",
                                           "encoder.segments.weight", Parts::kWhole}};
constexpr std::array kBertPooler{NameRow{"bert.pooler.dense", "head.pooler"}};
constexpr std::array kBertMaskedTokens{
    NameRow{"cls.predictions.transform.dense", "head.dense"},
    NameRow{"cls.predictions.transform.LayerNorm", "head.norm"},
    NameRow{"cls.predictions.bias", "head.bias", Parts::kWhole},
};
constexpr std::array kBertLabels{
    NameRow{"bert.pooler.dense", "head.pooler"},
    NameRow{"classifier", "head.output"},
};
constexpr std::array kBertSpans{NameRow{"qa_outputs", "head.output"}};
constexpr std::array<std::string_view, 3> kBertUnread{
    "*embeddings.position_ids", "*embeddings.token_type_ids", "cls.seq_relationship.*"};

ModelDescription read_bert(const ConfigReader& config) {
  return read_bert_config(config, 0);
}

void write_bert(const ModelDescription& description, nlohmann::ordered_json& config) {
  write_bert_config(description, 0, config);
}

std::string bert_incompatibility(const ModelDescription& description) {
  const std::string& pooling = description.model.pooling;
  if (description.head == Head::kLabels && pooling != "cls_tanh") {
    return "model.pooling = \"" + pooling + "\": it reads labels from cls_tanh";
  }
  if (description.head == Head::kNone && pooling == "cls_relu") {
    return "model.pooling = \"cls_relu\": its pooler has tanh";
  }
  return common_incompatibility(description);
}

}  // namespace

const Architecture kBert{.model_type = "bert",
                         .class_stem = "Bert",
                         .prefix = "bert.",
                         .tokenizer = &text::kBertKind,
                         .encoder = kBertEncoder,
                         .segments = kBertSegments,
                         .pooler = kBertPooler,
                         .heads = {{{}, kBertMaskedTokens, kBertLabels, kBertSpans}},
                         .output_matrix = "cls.predictions.decoder.weight",
                         .output_bias_copy = "cls.predictions.decoder.bias",
                         .unread = kBertUnread,
                         .read_config = &read_bert,
                         .write_config = &write_bert,
                         .incompatibility = &bert_incompatibility};

}  // namespace stretto::interchange
