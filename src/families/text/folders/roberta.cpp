// RoBERTa (Liu et al. 2019): BERT's encoder, with positions that count from the id of padding on.
#include <nlohmann/json.hpp>

#include "families/text/folders/common.h"
#include "interchange/config_reader.h"

namespace stretto::interchange {
namespace {

constexpr std::array kRobertaEncoder{
    NameRow{"roberta.embeddings.word_embeddings.weight", "encoder.embedding.weight", Parts::kWhole},
    NameRow{"roberta.embeddings.position_embeddings.weight", "encoder.positions.weight",
            Parts::kWhole, true},
    NameRow{"roberta.embeddings.LayerNorm", "encoder.embedding_norm"},
    NameRow{"roberta.encoder.layer.*.attention.self.{query,key,value}",
            "encoder.layers.*.self_attention.qkv"},
    NameRow{"roberta.encoder.layer.*.attention.output.dense",
            "encoder.layers.*.self_attention.out"},
    NameRow{"roberta.encoder.layer.*.attention.output.LayerNorm",
            "encoder.layers.*.self_residual.norm"},
    NameRow{"roberta.encoder.layer.*.intermediate.dense", "encoder.layers.*.ffn.up"},
    NameRow{"roberta.encoder.layer.*.output.dense", "encoder.layers.*.ffn.down"},
    NameRow{"roberta.encoder.layer.*.output.LayerNorm", "encoder.layers.*.ffn_residual.norm"},
};
constexpr std::array kRobertaSegments{NameRow{"roberta.embeddings.token_type_embeddings.weight",
                                              "encoder.segments.weight", Parts::kWhole}};
constexpr std::array kRobertaPooler{NameRow{"roberta.pooler.dense", "head.pooler"}};
constexpr std::array kRobertaMaskedTokens{
    NameRow{"lm_head.dense", "head.dense"},
    NameRow{"lm_head.layer_norm", "head.norm"},
    NameRow{"lm_head.bias", "head.bias", Parts::kWhole},
};
constexpr std::array kRobertaLabels{
    NameRow{"classifier.dense", "head.pooler"},
    NameRow{"classifier.out_proj", "head.output"},
};
constexpr std::array kRobertaSpans{NameRow{"qa_outputs", "head.output"}};
constexpr std::array<std::string_view, 2> kRobertaUnread{"*embeddings.position_ids",
                                                         "*embeddings.token_type_ids"};

int64_t pad_of(const ConfigReader& config) {
  return config.integer("pad_token_id", 1, 0, 1'000'000);
}

ModelDescription read_roberta(const ConfigReader& config) {
  return read_bert_config(config, pad_of(config) + 1);
}

void write_roberta(const ModelDescription& description, nlohmann::ordered_json& config) {
  write_bert_config(description, description.pad_id + 1, config);
}

std::string roberta_incompatibility(const ModelDescription& description) {
  const auto& model = description.model;
  if (description.head == Head::kLabels && model.pooling != "cls_tanh") {
    return "model.pooling = \"" + model.pooling + "\": it reads labels from cls_tanh";
  }
  if (description.head == Head::kNone && model.pooling == "cls_relu") {
    return "model.pooling = \"cls_relu\": its pooler has tanh";
  }
  if (description.head == Head::kMaskedTokens && model.activation != "gelu") {
    return "model.activation = \"" + model.activation +
           "\": the head of its masked tokens has gelu";
  }
  if (description.pad_id < 0) return "the tokenizer has no padding, from which its positions count";
  return common_incompatibility(description);
}

}  // namespace

const Architecture kRoberta{.model_type = "roberta",
                            .class_stem = "Roberta",
                            .prefix = "roberta.",
                            .tokenizer = &text::kRobertaKind,
                            .encoder = kRobertaEncoder,
                            .segments = kRobertaSegments,
                            .pooler = kRobertaPooler,
                            .heads = {{{}, kRobertaMaskedTokens, kRobertaLabels, kRobertaSpans}},
                            .output_matrix = "lm_head.decoder.weight",
                            .output_bias_copy = "lm_head.decoder.bias",
                            .unread = kRobertaUnread,
                            .read_config = &read_roberta,
                            .write_config = &write_roberta,
                            .incompatibility = &roberta_incompatibility};

}  // namespace stretto::interchange
