#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "families/text/folders/import_model.h"
#include "interchange/model_folders.h"
#include "models/bert_options.h"

namespace stretto::interchange {

/// Folders of BERT, RoBERTa and DistilBERT as a family on encoded texts has them: it says what its
/// models end in, and what their folders are to it.
class TextFolders : public ModelFolders {
 public:
  /// The head of the family's models; one family has each.
  virtual Head head() const = 0;
  /// Whether encoders without a head are the family's too, and those whose head is left out or not
  /// known. One family says so.
  virtual bool has_encoders() const { return false; }
  /// The family's sections for such a model, of its head() or of none: sections_of_folder(), and
  /// what its own keys say.
  virtual experiment::Experiment experiment_of(const ModelDescription& description,
                                               const FolderTexts& texts) const = 0;
  /// What a run says of its labels. @param names  in their order
  virtual void add_labels(const experiment::Experiment& /*run*/,
                          const std::vector<std::string>& /*names*/,
                          ModelDescription& /*description*/) const {}

  std::vector<std::string> model_types() const final;
  FolderWords words() const final;
  bool trains(const ConfigReader& config) const final;
  bool claims(const ConfigReader& config, const ImportOptions& options) const final;
  bool reads_encoders_alone() const final { return true; }
  ImportedRun read(const std::filesystem::path& folder, const ImportOptions& options) const final;
  /// Reads config.json alone.
  experiment::OtherModel describe(const std::filesystem::path& folder,
                                  const ImportOptions& options) const final;
};

/// What all families on encoded texts have of a folder, in the family's struct.
template <class Sections>
Sections sections_of_folder(const ModelDescription& description, const FolderTexts& texts) {
  const int64_t positions = description.model.max_positions;
  Sections sections;
  models::BertOptions model = description.model;
  model.head = description.head == Head::kNone ? "none" : "auto";
  sections.model = std::move(model);
  sections.tokenizer.type = texts.byte_bpe ? "byte_bpe" : "wordpiece";
  sections.data.max_text_tokens =
      texts.max_tokens > 0 ? std::min(texts.max_tokens, positions) : positions;
  sections.data.max_tokens = std::max(sections.data.max_tokens, sections.data.max_text_tokens);
  return sections;
}

/// The model of a run on encoded texts, for a tokenizer of so many ids: the encoder alone if
/// the family has no folders.
/// @param labels  their names in their order, of a head of labels
ModelDescription description_of_run(const experiment::Experiment& run, int64_t num_ids,
                                    int64_t pad_id, const std::vector<std::string>& labels);

}  // namespace stretto::interchange
