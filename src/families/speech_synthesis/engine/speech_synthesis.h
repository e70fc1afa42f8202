#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "families/speech_synthesis/engine/synthesis_run.h"
#include "families/speech_synthesis/engine/synthesis_scores.h"
#include "families/speech_synthesis/engine/voice_set.h"
#include "families/speech_synthesis/speech_synthesis_options.h"
#include "families/speech_synthesis/voice_frames.h"
#include "models/synthesis/synthesis_model.h"
#include "tasks/family.h"

namespace stretto::tasks {

/// Frames of speech from texts.
class SpeechSynthesisTask final : public FamilyTask {
 public:
  SpeechSynthesisTask(const experiment::Experiment& experiment, const Assets& assets,
                      const CommandContext& context);

  torch::nn::Module& model() override { return *model_; }
  const data::BatchSource& train_batches() override { return *train_batches_; }
  std::vector<std::string> replaceable_parts() const override;
  std::vector<std::string> statistics() const override { return {"l1"}; }
  std::vector<std::string> counters() const override;
  train::TaskWords words() const override;
  std::vector<std::pair<std::string, std::string>> show(const data::Batch& batch,
                                                        int64_t index) const override;

  train::Prepared prepare(data::Batch batch) const override;
  train::Sums loss(const train::Prepared& batch, const train::StepContext& context) override;
  /// Frames, once a batch is prepared; before that what the headers of its clips say.
  std::vector<double> weights(const data::Batch& batch) const override;
  std::vector<train::Score> measures(const train::Totals& totals) const override;

  bool can_validate() const override { return valid_.set.clips != nullptr; }
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
  void warn_of_shared_clips() const;

  const experiment::Experiment experiment_;
  const experiment::SpeechSynthesisOptions options_;
  const Assets assets_;
  const CommandContext context_;
  const RunVoice voice_;
  const VoiceText text_;
  const experiment::VoiceFrames frames_;
  std::shared_ptr<models::SynthesisModel> model_;
  VoiceSet train_;
  std::unique_ptr<data::BatchSource> train_batches_;
  VoiceBatches valid_;  ///< empty: there is none
};

/// Patterns of tensors that a run of other speakers begins anew.
std::vector<std::string> synthesis_replaceable_parts();

}  // namespace stretto::tasks
