#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "interchange/names.h"
#include "models/bert_options.h"
#include "text/pretrained_kind.h"

namespace stretto::interchange {

class ConfigReader;

/// What stands behind the encoder.
enum class Head : uint8_t { kNone, kMaskedTokens, kLabels, kSpans };
inline constexpr size_t kNumHeads = 4;

/// What a label says.
enum class LabelKind : uint8_t { kOne, kSeveral, kNumber };

/// A model as its folder describes it, beside the weights.
struct ModelDescription {
  models::BertOptions model;
  int64_t vocab_size = 0;  ///< rows of the table of tokens
  int64_t pad_id = 0;
  Head head = Head::kNone;
  LabelKind label_kind = LabelKind::kOne;  ///< of Head::kLabels, as are the names
  std::vector<std::string> labels = {};

  int64_t num_layers() const { return models::sizes_of(model).num_layers; }
};

/// One architecture of `transformers`: a file in architectures/ has its table of names and its keys
/// of config.json.
struct Architecture {
  std::string_view model_type;            ///< config.json says so
  std::string_view class_stem;            ///< "Bert" of "BertModel"
  std::string_view prefix;                ///< of the encoder in models with a head
  const text::PretrainedKind* tokenizer;  ///< of all its models
  std::span<const NameRow> encoder;       ///< with the prefix, as all that follows
  std::span<const NameRow> segments;      ///< of models with segments
  std::span<const NameRow> pooler;        ///< of models without a head
  std::array<std::span<const NameRow>, kNumHeads> heads;
  /// Their head.output.weight; in a model that ties it, the table of tokens under a second name.
  std::string_view output_matrix;
  std::string_view output_bias_copy;         ///< repeats head.bias; empty = nothing does
  std::span<const std::string_view> unread;  ///< patterns of names that nothing here reads

  /// Keys of config.json that are not of heads. Throws Error(kBadData) with the key.
  ModelDescription (*read_config)(const ConfigReader& config);
  void (*write_config)(const ModelDescription& description, nlohmann::ordered_json& config);
  /// Why the architecture cannot express a model; empty when it can.
  std::string (*incompatibility)(const ModelDescription& description);
};

extern const Architecture kBert, kRoberta, kDistilBert;

/// All that are known.
std::span<const Architecture* const> architectures();

/// By `model_type`; null when it is not known.
const Architecture* find_architecture(std::string_view model_type);

/// All names of a model of this description, in both directions.
/// @param has_prefix  false: their names have no prefix, as in models without a head
std::vector<NamePair> names_of(const Architecture& architecture,
                               const ModelDescription& description, bool has_prefix);
/// Tensors that `transformers` may store a second time, each with ours that it repeats.
std::vector<NamePair> copies_of(const Architecture& architecture,
                                const ModelDescription& description);

/// Whether a tensor of ours has a row for each id of the tokenizer.
bool is_table_of_tokens(const std::string& name, const ModelDescription& description);

/// The end of a name of a class of `transformers`, and the head that such models have.
struct ClassEnding {
  std::string_view ending;  ///< "Model"
  Head head;
};

/// All that are read; the first one of each head is the one that is written.
std::span<const ClassEnding> class_endings();

/// "BertModel", with a head "BertForSequenceClassification"
std::string class_name(const Architecture& architecture, Head head);

}  // namespace stretto::interchange
