#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "data/labelled/labelled_samples.h"
#include "families/text/engine/encoder_task.h"
#include "families/text_classification/engine/label_outputs.h"
#include "families/text_classification/engine/label_teacher.h"
#include "families/text_classification/text_classification_options.h"

namespace stretto::tasks {

/// The labels that a run keeps; nothing of regression. Throws Error(kUsage) where the file is
/// missing, Error(kBadData) where it is no list of names.
std::optional<data::Labels> labels_of(const Assets& assets,
                                      const experiment::TextClassificationOptions& options);

TextHead label_head(const data::Labels* labels);
/// As load_text_run() asks for it.
TextHead label_head_of_run(const experiment::Experiment& experiment, const Assets& assets);

/// Labels, or a value, of a text or of a pair of texts.
class TextClassificationTask : public EncoderTask {
 public:
  TextClassificationTask(const experiment::Experiment& experiment, const Assets& assets,
                         const CommandContext& context);

  std::vector<std::string> statistics() const override;
  std::vector<std::pair<std::string, std::string>> show(const data::Batch& batch,
                                                        int64_t index) const override;
  train::Prepared prepare(data::Batch batch) const override;
  train::Sums loss(const train::Prepared& batch, const train::StepContext& context) override;
  std::vector<double> weights(const data::Batch& batch) const override;
  std::vector<train::Score> measures(const train::Totals& totals) const override;
  bool can_validate() const override { return valid_ != nullptr; }
  train::Validation validate() override;
  /// And warns of headers that look like samples.
  void require_known_data(bool warn) const override;

 protected:
  std::vector<TextFacts> text_facts() const override { return facts_; }

 private:
  TextClassificationTask(const experiment::Experiment& experiment, const Assets& assets,
                         const CommandContext& context, std::optional<data::Labels> labels);
  const data::Labels* labels() const { return labels_ ? &*labels_ : nullptr; }
  TextFacts facts_of(const std::string& name, const data::LabelledSamples& set) const;

  const experiment::TextClassificationOptions options_;
  const std::optional<data::Labels> labels_;
  std::vector<TextFacts> facts_;
  std::optional<LabelOutputs> outputs_;
  std::optional<LabelTeacher> teacher_;                 ///< of loss.teacher
  std::shared_ptr<const data::LabelledSamples> valid_;  ///< null: there is none
  LabelBatches valid_batches_;                          ///< of valid_
  std::set<std::string> samples_as_header_;             ///< of all files
};

/// Warns of a header that looks like a sample (data::LabelledCounts::samples_as_header).
void warn_of_sample_as_header(const std::string& place);

/// The confusion matrix, where texts have one label each, and the texts whose loss is highest.
/// @param most  texts, at most
std::vector<report::Sample> label_samples(const LabelOutputs& outputs, const data::Labels* labels,
                                          const LabelPredictions& predictions,
                                          const data::LabelledSamples& set, size_t most);

/// The labels of a sample in words: "DESC", "a, b", "3.5".
std::string label_text(const data::Batch& batch, int64_t index, const data::Labels* labels);

}  // namespace stretto::tasks
