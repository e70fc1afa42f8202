#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/documents/masked_batches.h"
#include "families/masked_lm/engine/masked_model.h"
#include "families/masked_lm/engine/masked_teacher.h"
#include "families/masked_lm/masked_lm_options.h"
#include "families/text/engine/encoder_task.h"

namespace stretto::tasks {

/// The sections of a masked language model. Throws std::bad_variant_access for another family.
const experiment::MaskedLmOptions& masked_lm_of(const experiment::Experiment& experiment);

/// Text of an experiment, tokenised and with masks. Throws as open_documents() and Masker do.
/// @param key  that names the paths: "data.train"
data::MaskedText open_masked_text(const experiment::Experiment& experiment,
                                  const text::Tokenizer& tokenizer,
                                  const std::vector<std::string>& paths, const std::string& key);

/// Batches of a text with the masks of evaluation, bounded by `[eval]`.
std::unique_ptr<data::BatchSource> masked_eval_batches(const experiment::Experiment& experiment,
                                                       const data::MaskedText& text,
                                                       at::Device device);

/// The head of every masked language model.
inline constexpr TextHead kMaskedTokenHead{.kind = models::TextHeadKind::kMaskedTokens};

/// The model of a run for reading. Throws as load_text_run() does, and Error(kUsage) for several
/// checkpoints, of which masked language models make no ensembles.
LoadedTextRun load_masked_lm(const experiment::Experiment& experiment,
                             const runs::RunFolder& folder, const std::string& checkpoint,
                             at::Device device);

/// The scores of masked tokens: nll, ppl, accuracy.
/// @param nll  mean over them, natural logarithm
std::vector<train::Score> masked_scores(double nll, double accuracy);

/// Masked language modelling: text as documents, an encoder, the cross entropy of hidden tokens.
class MaskedLmTask final : public EncoderTask {
 public:
  /// @param assets  of the run folder
  MaskedLmTask(const experiment::Experiment& experiment, Assets assets,
               const CommandContext& context);

  /// The text with its masks, and the tokens that it hides.
  std::vector<std::pair<std::string, std::string>> show(const data::Batch& batch,
                                                        int64_t index) const override;
  std::vector<std::string> counters() const override {
    return {"tokens", "texts", "masked tokens"};
  }
  /// With a teacher the loss is not the cross entropy of the hidden tokens, which is summed too.
  std::vector<std::string> statistics() const override {
    return teacher_ ? std::vector<std::string>{"right", "nll"} : std::vector<std::string>{"right"};
  }
  train::Prepared prepare(data::Batch batch) const override {
    return prepare_masked(std::move(batch), text_model());
  }
  train::Sums loss(const train::Prepared& batch, const train::StepContext& context) override;
  /// Masked tokens.
  std::vector<double> weights(const data::Batch& batch) const override;
  std::vector<train::Score> measures(const train::Totals& totals) const override;
  bool can_validate() const override { return valid_.sequences != nullptr; }
  train::Validation validate() override;

 protected:
  std::vector<TextFacts> text_facts() const override;

 private:
  uint64_t seed() const { return static_cast<uint64_t>(experiment().run.seed); }
  std::vector<report::Sample> samples();

  data::MaskedText train_, valid_;  ///< valid: without sequences where there is none
  std::unique_ptr<data::BatchSource> valid_batches_;
  std::unique_ptr<MaskedTeacher> teacher_;  ///< of loss.teacher
};

}  // namespace stretto::tasks
