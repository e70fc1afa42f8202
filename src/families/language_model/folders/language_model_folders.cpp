#include "families/language_model/folders/language_model_folders.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "families/language_model/folders/causal_class.h"
#include "families/language_model/folders/import_causal.h"
#include "families/language_model/language_model_options.h"
#include "interchange/config_reader.h"
#include "interchange/described_experiment.h"
#include "interchange/model_folders.h"

namespace stretto::interchange {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kUsualCausalTokens = 1024;  // of a text; many models have more positions

experiment::Experiment causal_experiment(const CausalDescription& description,
                                         std::vector<std::string> end_tokens) {
  experiment::LanguageModelOptions sections;
  sections.model = description.model;
  sections.decode.text_begin = "tokenizer";
  sections.decode.end_tokens = std::move(end_tokens);
  auto& data = sections.data;
  data.max_text_tokens = std::min(description.model.max_positions, kUsualCausalTokens);
  data.max_tokens = std::max(data.max_tokens, data.max_text_tokens);
  return described_experiment(std::move(sections));
}

/// Language models of GPT-2's form and of Llama's, which are read whole.
class LanguageModelFolders final : public ModelFolders {
 public:
  std::vector<std::string> model_types() const override {
    std::vector<std::string> types;
    for (const CausalClass* its : causal_classes()) types.emplace_back(its->model_type);
    return types;
  }
  FolderWords words() const override {
    return {.model = "a language model",
            .models = "language models",
            .classes = "GPT-2, Llama, Mistral, Qwen2 or Qwen3"};
  }
  bool trains(const ConfigReader& /*config*/) const override { return true; }
  bool claims(const ConfigReader& /*config*/, const ImportOptions& /*options*/) const override {
    return true;
  }
  ImportedRun read(const fs::path& folder, const ImportOptions& options) const override {
    auto model = import_causal(folder, options);
    model.experiment = causal_experiment(model.description, model.end_tokens);
    return model;  // what every kind of model has
  }
  /// Reads config.json alone.
  experiment::OtherModel describe(const fs::path& folder,
                                  const ImportOptions& /*options*/) const override {
    const auto description = read_causal_config(read_folder_config(folder));
    experiment::OtherModel found{
        .options = load_described(causal_experiment(description, {}), folder).options,
        .tensors = {},
        .name = folder.string()};
    for (auto& pair : causal_names(description)) found.tensors.push_back(std::move(pair.ours));
    return found;
  }
};

}  // namespace

const ModelFolders& language_model_folders() {
  static const LanguageModelFolders folders;
  return folders;
}

}  // namespace stretto::interchange
