#include "families/text/folders/model_config.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "data/labelled/labels.h"
#include "interchange/config_reader.h"

namespace stretto::interchange {
namespace {

constexpr int64_t kMaxLabels = 100'000;

const Architecture& architecture_of(const ConfigReader& config) {
  const std::string type = config.text("model_type", "");
  if (const Architecture* found = find_architecture(type)) return *found;
  std::vector<std::string> known;
  for (const auto* one : architectures()) known.emplace_back(one->model_type);
  config.refuse("model_type", type.empty() ? "is missing" : "is `" + printable(type) + "`",
                "known: " + join(known, ", "));
}

Head head_of(const ConfigReader& config, const Architecture& architecture,
             const std::string& model_class) {
  if (model_class.empty()) return Head::kNone;
  for (const auto& known : class_endings()) {
    if (model_class == std::string(architecture.class_stem) + std::string(known.ending)) {
      return known.head;
    }
  }
  config.refuse("architectures",
                "has `" + printable(model_class) +
                    "`, whose head is not known: masked tokens, sequences and answers to "
                    "questions are",
                "--encoder-only imports what stands below the head");
}

std::vector<std::string> labels_of(const ConfigReader& config) {
  std::vector<std::string> labels;
  if (!config.has("id2label")) {
    const int64_t count = config.integer("num_labels", 2, 1, kMaxLabels);
    for (int64_t i = 0; i < count; ++i) labels.push_back("LABEL_" + std::to_string(i));
    return labels;
  }
  const auto& names = config.json()["id2label"];
  if (!names.is_object() || names.empty() || names.size() > static_cast<size_t>(kMaxLabels)) {
    config.refuse("id2label", "is no list of labels", "the config.json is damaged");
  }
  std::set<std::string> seen;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto found = names.find(std::to_string(i));
    if (found == names.end() || !found->is_string()) {
      config.refuse("id2label", "has no name for label " + std::to_string(i),
                    "give the labels 0, 1, … a name each");
    }
    labels.push_back(found->get<std::string>());
    if (!data::is_one_line(labels.back())) {
      config.refuse("id2label",
                    "has a tab or a line end in the name `" + printable(labels.back(), 60) + "`",
                    "labels are written one a line: rename it");
    }
    if (labels.back().empty() || !seen.insert(labels.back()).second) {
      config.refuse("id2label",
                    "has the name `" + printable(labels.back()) +
                        "` for more than one label, or "
                        "an empty one",
                    "give each label a name of its own");
    }
  }
  return labels;
}

LabelKind label_kind_of(const ConfigReader& config, size_t count) {
  const std::string type = config.text("problem_type", "");
  if (type.empty()) return count == 1 ? LabelKind::kNumber : LabelKind::kOne;
  if (type == "single_label_classification") return LabelKind::kOne;
  if (type == "multi_label_classification") return LabelKind::kSeveral;
  if (type != "regression") config.refuse("problem_type", "is `" + printable(type) + "`");
  if (count != 1) {
    config.refuse("problem_type",
                  "is `regression` with " + counted(static_cast<int64_t>(count), "value"),
                  "one value is predicted here");
  }
  return LabelKind::kNumber;
}

const char* problem_type_of(LabelKind kind) {
  switch (kind) {
    case LabelKind::kNumber:
      return "regression";
    case LabelKind::kSeveral:
      return "multi_label_classification";
    case LabelKind::kOne:
      break;
  }
  return "single_label_classification";
}

}  // namespace

ModelConfig read_model_config(std::string_view bytes, const std::string& where, bool encoder_only) {
  return read_model_config(ConfigReader(parse_json(bytes, where, kMaxConfigBytes), where),
                           encoder_only);
}

ModelConfig read_model_config(const ConfigReader& config, bool encoder_only) {
  ModelConfig found{.architecture = &architecture_of(config),
                    .model_class = model_class_of(config)};
  found.description = found.architecture->read_config(config);
  auto& description = found.description;
  description.pad_id =
      config.integer("pad_token_id", found.architecture == &kRoberta ? 1 : 0, 0, INT32_MAX);
  if (!encoder_only) description.head = head_of(config, *found.architecture, found.model_class);
  if (description.head == Head::kLabels) {
    description.labels = labels_of(config);
    description.label_kind = label_kind_of(config, description.labels.size());
  }
  return found;
}

std::optional<Head> find_head(const ConfigReader& config) {
  const Architecture& architecture = architecture_of(config);
  const std::string name = model_class_of(config);
  for (const auto& known : class_endings()) {
    if (name == std::string(architecture.class_stem) + std::string(known.ending)) return known.head;
  }
  return std::nullopt;
}

std::string write_model_config(const Architecture& architecture,
                               const ModelDescription& description) {
  nlohmann::ordered_json config{
      {"architectures", {class_name(architecture, description.head)}},
      {"model_type", architecture.model_type},
      {"vocab_size", description.vocab_size},
  };
  architecture.write_config(description, config);
  config["pad_token_id"] = description.pad_id;
  config["tie_word_embeddings"] = description.model.tie_embeddings;
  config["torch_dtype"] = "float32";
  if (description.head == Head::kLabels) {
    auto names = nlohmann::ordered_json::object(), numbers = nlohmann::ordered_json::object();
    for (size_t i = 0; i < description.labels.size(); ++i) {
      names[std::to_string(i)] = description.labels[i];
      numbers[description.labels[i]] = i;
    }
    config["id2label"] = names;
    config["label2id"] = numbers;
    config["problem_type"] = problem_type_of(description.label_kind);
  }
  return config.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace stretto::interchange
