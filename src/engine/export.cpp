#include <iostream>

#include "base/error.h"
#include "base/text.h"
#include "data/labelled/labelled_set.h"
#include "engine/commands.h"
#include "experiment/text_sections.h"
#include "interchange/described_experiment.h"
#include "interchange/export_model.h"
#include "runs/choose_checkpoint.h"
#include "runs/merged_lora.h"
#include "runs/provenance.h"
#include "runs/run_folder.h"
#include "tasks/described_by.h"

namespace stretto::engine {
namespace {

constexpr const char* kTokenizerAsset = "tokenizer.json";
constexpr const char* kLabelsFile = "labels.json";

text::TokenizerSpec tokenizer_of(const std::map<std::string, std::string>& assets,
                                 const std::string& run) {
  const auto found = assets.find(kTokenizerAsset);
  if (found == assets.end()) {
    throw Error(ExitCode::kUsage,
                run + ": the tokenizer is a SentencePiece model, which has no tokenizer.json",
                "models of WordPiece and of byte-level BPE are exported");
  }
  return text::parse_tokenizer_json(found->second, kTokenizerAsset);
}

std::vector<std::string> labels_of(const std::map<std::string, std::string>& assets) {
  const auto found = assets.find(kLabelsFile);
  if (found == assets.end()) return {};
  const auto labels = data::labels_from_json(found->second, kLabelsFile);
  return labels ? labels->names() : std::vector<std::string>();
}

}  // namespace

int run_export(const ExportRequest& request) {
  const auto folder = runs::RunFolder::open(request.run_directory);
  const auto assets = folder.read_assets();
  const auto checkpoint = runs::open_checkpoint(folder.directory(), request.checkpoint);
  const auto experiment = tasks::described_by(checkpoint, folder, request.experiment.options);
  // The model first: a task that has no such class says so before its tokenizer does.
  auto description = interchange::describe(experiment, 1, 0, labels_of(assets));
  auto tokenizer = tokenizer_of(assets, request.run_directory);
  runs::require_same_tokenizer(checkpoint, runs::tokenizer_hashes(assets),
                               folder.directory() / "tokenizer");
  const auto made = text::make_spec_tokenizer(tokenizer, kTokenizerAsset, 0);
  description.vocab_size = made->size();
  description.pad_id = made->specials().pad;
  const auto& architecture = interchange::choose_architecture(
      description, tokenizer.model == text::TokenizerSpec::Model::kByteBpe, request.model_type);
  const auto& file = checkpoint.file("model");
  const auto weights =
      runs::merge_lora(file, (checkpoint.directory / "model.safetensors").string());
  interchange::export_model(
      {.description = description,
       .tokenizer = std::move(tokenizer),
       .max_text_tokens = experiment::text_sections(experiment).max_text_tokens,
       .tensors = weights.file.tensors()},
      architecture, request.folder);
  std::cout << request.folder << ": " << interchange::class_name(architecture, description.head)
            << ", from " << tasks::name_of(checkpoint.directory, folder) << std::endl;
  return 0;
}

}  // namespace stretto::engine
