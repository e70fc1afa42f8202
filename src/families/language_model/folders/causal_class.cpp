#include "families/language_model/folders/causal_class.h"

#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "interchange/config_reader.h"
#include "interchange/incompatibility.h"
#include "interchange/model_folders.h"

namespace stretto::interchange {
namespace {

constexpr const char *kCausalTokenTable = "decoder.embedding.weight",
                     *kCausalOutputTable = "output.weight", *kTheirCausalOutput = "lm_head.weight";
constexpr int64_t kMaxCausalVocabulary = 100'000'000;

/// What no class here has.
std::string shared_causal_incompatibility(const models::CausalTransformerOptions& model) {
  if (model.adapter.is_on()) return adapter_incompatibility(model.adapter);
  if (model.norm != "pre") {
    return "model.norm = \"" + model.norm + "\": its norms stand in front of parts";
  }
  if (model.parallel_residual) return "model.parallel_residual = true: its parts follow each other";
  return incompatibility_of_output(model);
}

NamePair causal_output_name(const char* ours) {
  return {.theirs = {kTheirCausalOutput}, .ours = ours};
}

}  // namespace

std::string incompatibility_of_output(const models::CausalTransformerOptions& model) {
  if (model.attention_softcap > 0) return "model.attention_softcap: its scores are not capped";
  if (model.logit_softcap > 0) return "model.logit_softcap: its logits are not capped";
  if (model.embedding_scale != "none") {
    return "model.embedding_scale = \"" + model.embedding_scale + "\": it adds vectors as they are";
  }
  if (model.output_bias) return "model.output_bias = true: its output has none";
  if (model.adaptive_softmax.is_on()) {
    return "model.adaptive_softmax: its output is one softmax over all tokens";
  }
  return "";
}

std::span<const CausalClass* const> causal_classes() {
  static constexpr std::array<const CausalClass*, 5> kClasses{&kGpt2, &kLlama, &kMistral, &kQwen2,
                                                              &kQwen3};
  return kClasses;
}

const CausalClass* find_causal_class(std::string_view model_type) {
  for (const CausalClass* known : causal_classes()) {
    if (known->model_type == model_type) return known;
  }
  return nullptr;
}

CausalDescription read_causal_config(const ConfigReader& config) {
  const std::string type = config.text("model_type", "");
  const CausalClass* its = find_causal_class(type);
  if (its == nullptr) {
    std::vector<std::string> known;
    for (const CausalClass* one : causal_classes()) known.emplace_back(one->model_type);
    refuse_model_type(config, type, known);
  }
  const std::string name = model_class_of(config);
  if (config.has("architectures") && name != its->name) {
    config.refuse("architectures", "has `" + printable(name) + "`",
                  "of its models " + std::string(its->name) + " is imported, which predicts text");
  }
  return {.its = its,
          .model = its->read(*its, config),
          .vocab_size = config.integer("vocab_size", 1, kMaxCausalVocabulary)};
}

CausalDescription read_causal_config(std::string_view bytes, const std::string& where) {
  return read_causal_config(ConfigReader(parse_json(bytes, where, kMaxConfigBytes), where));
}

std::string write_causal_config(const CausalDescription& description,
                                const text::SpecialIds& specials) {
  const CausalClass& its = *description.its;
  nlohmann::ordered_json config{{"architectures", {its.name}},
                                {"model_type", its.model_type},
                                {"vocab_size", description.vocab_size}};
  its.write(its, description.model, config);
  config["tie_word_embeddings"] = description.model.tie_embeddings;
  config["initializer_range"] = description.model.init_std;
  const auto add = [&](const char* key, int64_t id) {
    if (id >= 0) config[key] = id;
  };
  add("bos_token_id", specials.bos);
  add("eos_token_id", specials.eos);
  add("pad_token_id", specials.pad);
  config["torch_dtype"] = "float32";
  return config.dump(2) + "\n";
}

std::string causal_incompatibility(const CausalClass& its,
                                   const models::CausalTransformerOptions& model) {
  auto incompatibility = shared_causal_incompatibility(model);
  return incompatibility.empty() ? its.incompatibility(its, model) : incompatibility;
}

const CausalClass& choose_causal_class(const models::CausalTransformerOptions& model,
                                       const std::string& wanted) {
  std::vector<std::string> reasons;
  for (const CausalClass* its : causal_classes()) {
    if (wanted != "auto" && wanted != its->model_type) continue;
    const std::string incompatibility = causal_incompatibility(*its, model);
    if (incompatibility.empty()) return *its;
    reasons.push_back(std::string(its->name) + ": " + incompatibility);
  }
  throw Error(ExitCode::kUsage,
              "no class of transformers is equal to this model: " + join(reasons, "; "),
              "the checkpoint itself is safetensors (RUN/checkpoints), which other programs read");
}

std::vector<NamePair> causal_names(const CausalDescription& description, bool has_prefix) {
  const CausalClass& its = *description.its;
  auto names = its.names(description.model);
  for (NamePair& pair : names) {
    for (std::string& name : pair.theirs) {
      if (!has_prefix && name.starts_with(its.prefix)) name.erase(0, its.prefix.size());
    }
  }
  if (!description.model.tie_embeddings) names.push_back(causal_output_name(kCausalOutputTable));
  return names;
}

std::vector<NamePair> causal_copies(const CausalDescription& description) {
  if (!description.model.tie_embeddings) return {};
  return {causal_output_name(kCausalTokenTable)};
}

bool is_causal_table(const std::string& name) {
  return name == kCausalTokenTable || name == kCausalOutputTable;
}

}  // namespace stretto::interchange
