#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/bad_samples.h"
#include "data/batch_source.h"
#include "families/text/engine/run_tokenizer.h"
#include "families/text/known_text.h"
#include "families/text/text_sections.h"
#include "models/seq2seq_model.h"
#include "tasks/family.h"
#include "train/evaluation.h"

namespace stretto::tasks {

/// What a task says of one of its texts: training or validation.
struct TextFacts {
  std::string name;   ///< "training text"
  uint64_t hash = 0;  ///< of all that shapes its batches
  int64_t samples = 0;
  experiment::TokenCounts counts = {};
  int64_t cut_samples = 0, cut_tokens = 0;
  data::LeftOut left_out = {};  ///< by data.bad_samples
  /// What else there is to tell: {"left out", "12 rows without a label"}.
  std::vector<std::pair<std::string, std::string>> more = {};
};

/// What the tasks on texts share: one tokenizer, batches of data/text_columns.h, and what they say
/// of their texts. A family adds its model, its data, its loss and its scores; one whose model is
/// an encoder of text derives from EncoderTask.
class TextTask : public FamilyTask {
 public:
  const data::BatchSource& train_batches() override { return *batches_; }
  std::vector<std::string> counters() const override { return {"tokens", "texts"}; }
  train::TaskWords words() const override;
  /// The tokens of the sample, as the tokenizer decodes them.
  std::vector<std::pair<std::string, std::string>> show(const data::Batch& batch,
                                                        int64_t index) const override;
  Assets assets() const override { return assets_; }

  std::vector<distributed::Fact> data_facts() const override;
  void require_known_data(bool warn) const override;
  std::vector<std::pair<std::string, std::string>> facts() const override;
  std::vector<std::string> notes() const override;
  data::Loading loading() const override { return sections().loading; }
  int64_t update_bound() const override;
  std::vector<runs::MatchedTable> matched_tables(const runs::InitialRun& run) const override;

 protected:
  /// @param assets  all files of the run
  TextTask(const experiment::Experiment& experiment, Assets assets, const CommandContext& context);

  /// Training text first; validation text where there is some.
  virtual std::vector<TextFacts> text_facts() const = 0;
  /// The model, as facts and tables need it.
  virtual int64_t num_parameters() const = 0;
  virtual std::vector<models::VocabularyTable> vocabulary_tables() const = 0;

  /// To be called by the family's constructor.
  void set_train_batches(std::unique_ptr<data::BatchSource> batches) {
    batches_ = std::move(batches);
  }

  const experiment::Experiment& experiment() const { return experiment_; }
  experiment::TextSections sections() const { return experiment::text_sections(experiment_); }
  const text::Tokenizer& tokenizer() const { return *tokenizer_.tokenizer; }
  const distributed::ProcessGroup& group() const { return context_.group; }
  at::Device device() const { return context_.device; }
  /// How validation is computed, but for what a family prepares.
  train::EvaluationSetup evaluation() const {
    return {.device = device(), .group = group(), .loading = loading()};
  }

 private:
  const experiment::Experiment experiment_;
  Assets assets_;
  CommandContext context_;
  RunTokenizer tokenizer_;
  std::unique_ptr<data::BatchSource> batches_;
};

/// Dropout and its key in training.
models::ForwardContext training_context(const train::StepContext& context);

}  // namespace stretto::tasks
