#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "families/language_model/engine/language_run.h"
#include "families/language_model/engine/scored_text.h"
#include "families/text/engine/text_task.h"
#include "report/sample.h"

namespace stretto::tasks {

/// Language modelling: a text as a stream of tokens, each predicted from those before it.
///
/// A Transformer reads sequences that stand for themselves. A recurrent model reads lanes, whose
/// state goes on from update to update (train::Task::carry()).
class LanguageModelTask final : public TextTask {
 public:
  /// @param assets  of the run folder
  LanguageModelTask(const experiment::Experiment& experiment, Assets assets,
                    const CommandContext& context);

  torch::nn::Module& model() override { return *model_; }
  std::vector<optim::TiedName> tied_names() const override { return model_->tied_names(); }
  train::TaskWords words() const override;
  std::vector<std::string> notes() const override;
  std::vector<std::pair<std::string, std::string>> show(const data::Batch& batch,
                                                        int64_t index) const override;
  std::vector<std::string> statistics() const override { return {"nll"}; }
  std::vector<parallel::LaneState> carry() const override;

  train::Prepared prepare(data::Batch batch) const override {
    return prepare_stream(std::move(batch), {});
  }
  train::Sums loss(const train::Prepared& batch, const train::StepContext& context) override;
  /// Tokens that are predicted.
  std::vector<double> weights(const data::Batch& batch) const override;
  std::vector<train::Score> measures(const train::Totals& totals) const override;
  bool can_validate() const override { return valid_.documents != nullptr; }
  train::Validation validate() override;

 protected:
  std::vector<TextFacts> text_facts() const override;
  int64_t num_parameters() const override;
  std::vector<models::VocabularyTable> vocabulary_tables() const override {
    return model_->vocabulary_tables();
  }

 private:
  const experiment::LanguageModelOptions& own() const { return language_model_of(experiment()); }
  bool has_carry() const { return models::carries_state(own().model); }
  std::unique_ptr<data::BatchSource> make_train_batches();
  std::vector<report::Sample> samples();

  std::vector<int64_t> ends_;  ///< tokens of `decode.end_tokens`
  std::shared_ptr<models::CausalModel> model_;
  std::shared_ptr<const data::Documents> train_;
  int64_t num_train_samples_ = 0;
  ScoredText valid_;  ///< without documents where there is none
};

}  // namespace stretto::tasks
