#include "families/text/folders/text_folders.h"

#include <utility>

#include "families/text/encoder_sections.h"
#include "families/text/folders/model_config.h"
#include "interchange/config_reader.h"
#include "interchange/described_experiment.h"

namespace stretto::interchange {

std::vector<std::string> TextFolders::model_types() const {
  std::vector<std::string> types;
  for (const auto* architecture : architectures()) types.emplace_back(architecture->model_type);
  return types;
}

FolderWords TextFolders::words() const {
  return {.model = "an encoder of text",
          .models = "encoders of text",
          .classes = "BERT, RoBERTa or DistilBERT"};
}

bool TextFolders::trains(const ConfigReader& config) const {
  return find_head(config) == head();
}

bool TextFolders::claims(const ConfigReader& config, const ImportOptions& options) const {
  const auto its_head = find_head(config);
  const bool is_alone = options.encoder_only || !its_head || its_head == Head::kNone;
  return is_alone ? has_encoders() : its_head == head();
}

ImportedRun TextFolders::read(const std::filesystem::path& folder,
                              const ImportOptions& options) const {
  auto model = import_model(folder, options);
  model.experiment = experiment_of(model.config.description, model.texts);
  return model;  // what every kind of model has
}

experiment::OtherModel TextFolders::describe(const std::filesystem::path& folder,
                                             const ImportOptions& options) const {
  auto config = read_model_config(read_folder_config(folder), options.encoder_only);
  auto& description = config.description;
  const auto& architecture = *config.architecture;
  // Others may have a pooler, and their labels are read behind one.
  if (description.head == Head::kNone && architecture.pooler.empty()) {
    description.model.pooling = "mean";
  }
  const bool byte_bpe = architecture.tokenizer->model == text::TokenizerSpec::Model::kByteBpe &&
                        !std::filesystem::exists(folder / "vocab.txt");
  const auto described = experiment_of(description, {.byte_bpe = byte_bpe});
  experiment::OtherModel found{
      .options = load_described(described, folder).options, .tensors = {}, .name = folder.string()};
  for (auto& pair : names_of(architecture, description, /*has_prefix=*/true)) {
    found.tensors.push_back(std::move(pair.ours));
  }
  return found;
}

ModelDescription description_of_run(const experiment::Experiment& run, int64_t num_ids,
                                    int64_t pad_id, const std::vector<std::string>& labels) {
  ModelDescription description{
      .model = *experiment::encoder_sections(run).model, .vocab_size = num_ids, .pad_id = pad_id};
  const auto* folders = dynamic_cast<const TextFolders*>(find_folders(run));
  if (description.model.head == "none" || folders == nullptr) return description;
  description.head = folders->head();
  folders->add_labels(run, labels, description);
  return description;
}

}  // namespace stretto::interchange
