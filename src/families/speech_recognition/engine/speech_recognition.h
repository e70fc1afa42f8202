#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "audio/sound_features.h"
#include "families/speech_recognition/engine/speech_frames.h"
#include "families/speech_recognition/engine/speech_run.h"
#include "families/speech_recognition/engine/speech_scores.h"
#include "families/speech_recognition/speech_recognition_options.h"
#include "models/speech/speech_model.h"
#include "tasks/family.h"

namespace stretto::tasks {

/// Texts, or labels, of sounds.
class SpeechRecognitionTask final : public FamilyTask {
 public:
  SpeechRecognitionTask(const experiment::Experiment& experiment, const Assets& assets,
                        const CommandContext& context);

  torch::nn::Module& model() override { return *model_; }
  const data::BatchSource& train_batches() override { return *train_.batches; }
  std::vector<std::string> replaceable_parts() const override;
  std::vector<std::string> statistics() const override;
  std::vector<std::string> counters() const override;
  train::TaskWords words() const override;
  std::vector<std::pair<std::string, std::string>> show(const data::Batch& batch,
                                                        int64_t index) const override;

  train::Prepared prepare(data::Batch batch) const override;
  train::Sums loss(const train::Prepared& batch, const train::StepContext& context) override;
  std::vector<double> weights(const data::Batch& batch) const override;
  std::vector<train::Score> measures(const train::Totals& totals) const override;

  bool can_validate() const override { return valid_.set != nullptr; }
  train::Validation validate() override;
  Assets assets() const override { return assets_; }

  std::vector<distributed::Fact> data_facts() const override;
  void require_known_data(bool /*warn*/) const override {}
  std::vector<std::pair<std::string, std::string>> facts() const override;
  std::vector<std::string> notes() const override;
  data::Loading loading() const override;
  int64_t update_bound() const override;
  std::vector<runs::MatchedTable> matched_tables(const runs::InitialRun& run) const override;

 private:
  SpokenSet open(const std::string& key, const std::vector<std::string>& paths,
                 bool is_training) const;
  train::Sums label_loss(const train::Prepared& batch, const train::StepContext& context);
  std::vector<int64_t> counts_of(const train::Prepared& batch) const;
  void tell_of_data() const;

  const experiment::Experiment experiment_;
  const experiment::SpeechRecognitionOptions own_;
  const Assets assets_;
  const CommandContext context_;
  const SpeechUnits units_;
  const audio::SoundFeatures sounds_;
  std::shared_ptr<models::SpeechModel> model_;
  SpokenSet train_, valid_;             ///< valid_ is empty where there is none
  std::optional<SpeechReader> reader_;  ///< of validation
};

/// Patterns of tensors that depend on what the outputs stand for.
std::vector<std::string> speech_output_parts();

}  // namespace stretto::tasks
