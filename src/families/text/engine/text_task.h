#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/bad_samples.h"
#include "data/batch_source.h"
#include "families/text/engine/run_model.h"
#include "families/text/known_text.h"
#include "families/text/text_sections.h"
#include "text/encoded_text.h"
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

/// What the tasks on encoded texts share: a TextModel, one tokenizer, batches of
/// data/text_columns.h. A family adds its data, its loss and its scores.
class TextTask : public FamilyTask {
 public:
  torch::nn::Module& model() override { return *model_; }
  const data::BatchSource& train_batches() override { return *batches_; }
  std::vector<optim::TiedName> tied_names() const override { return model_->tied_names(); }
  std::vector<std::string> counters() const override { return {"tokens", "texts"}; }
  train::TaskWords words() const override;
  /// The tokens of the sample, as the tokenizer decodes them.
  std::vector<std::pair<std::string, std::string>> show(const data::Batch& batch,
                                                        int64_t index) const override;
  Assets assets() const override { return assets_; }
  std::vector<std::string> replaceable_parts() const override { return {"head.*"}; }
  bool replaces_all_parts() const override;

  std::vector<distributed::Fact> data_facts() const override;
  void require_known_data(bool warn) const override;
  std::vector<std::pair<std::string, std::string>> facts() const override;
  std::vector<std::string> notes() const override;
  data::Loading loading() const override { return sections().loading; }
  int64_t update_bound() const override;
  std::vector<runs::MatchedTable> matched_tables(const runs::InitialRun& run) const override;

 protected:
  /// Makes the model. Throws Error(kUsage) where it has no head.
  /// @param assets  all files of the run
  TextTask(const experiment::Experiment& experiment, Assets assets, const TextHead& head,
           const CommandContext& context);

  /// Training text first; validation text where there is some.
  virtual std::vector<TextFacts> text_facts() const = 0;

  /// To be called by the family's constructor.
  void set_train_batches(std::unique_ptr<data::BatchSource> batches) {
    batches_ = std::move(batches);
  }

  const experiment::Experiment& experiment() const { return experiment_; }
  experiment::TextSections sections() const { return experiment::text_sections(experiment_); }
  const text::Tokenizer& tokenizer() const { return *tokenizer_.tokenizer; }
  models::TextModel& text_model() const { return *model_; }
  std::shared_ptr<models::TextModel> shared_model() const { return model_; }
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
  std::shared_ptr<models::TextModel> model_;
  std::unique_ptr<data::BatchSource> batches_;
};

/// Dropout and its key in training.
models::ForwardContext training_context(const train::StepContext& context);

/// A batch of texts (data/text_columns.h) with its tokens as rows(0), and their segments where the
/// model has vectors for them; a family adds what its loss reads.
train::Prepared prepare_texts(data::Batch batch, const models::TextModel& model);

/// Appends one encoded text as one more sample of a batch; columns of a family are its own matter.
void append_text(const text::EncodedText& text, data::Batch& batch);

}  // namespace stretto::tasks
