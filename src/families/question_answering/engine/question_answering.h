#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/squad/question_windows.h"
#include "families/question_answering/engine/answer_finder.h"
#include "families/question_answering/question_answering_options.h"
#include "families/question_answering/question_data.h"
#include "families/text/engine/text_task.h"

namespace stretto::tasks {

/// Question answering: windows of paragraphs, an encoder with two scores for each row, cross
/// entropy of begin and end, exact match and F1.
class QuestionAnsweringTask : public TextTask {
 public:
  /// @param assets   files of the run; where one of them does not say so, the training questions
  ///                 decide whether a paragraph may not answer its question
  /// @param context  whose processes share validation
  QuestionAnsweringTask(const experiment::Experiment& experiment, const Assets& assets,
                        const CommandContext& context);

  /// Windows whose begin and end both have the best score.
  std::vector<std::string> statistics() const override { return {"right"}; }
  std::vector<std::string> counters() const override { return {"tokens", "windows"}; }
  train::TaskWords words() const override;
  std::vector<std::pair<std::string, std::string>> show(const data::Batch& batch,
                                                        int64_t index) const override;
  train::Prepared prepare(data::Batch batch) const override;
  train::Sums loss(const train::Prepared& batch, const train::StepContext& context) override;
  std::vector<double> weights(const data::Batch& batch) const override;
  std::vector<train::Score> measures(const train::Totals& totals) const override;
  bool can_validate() const override { return valid_ != nullptr; }
  train::Validation validate() override;
  void require_known_data(bool warn) const override;

 protected:
  std::vector<TextFacts> text_facts() const override { return facts_; }

 private:
  std::vector<report::Sample> samples(const FoundAnswers& found) const;

  const experiment::QuestionAnsweringOptions& options_;
  std::shared_ptr<const data::QuestionWindows> train_, valid_;  ///< valid_: null = none
  std::shared_ptr<const data::WindowSamples> samples_;
  std::vector<TextFacts> facts_;
  metrics::SquadVersion version_ = metrics::SquadVersion::kV1;
};

}  // namespace stretto::tasks
