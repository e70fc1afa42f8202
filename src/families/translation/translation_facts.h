#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiment/task_rules.h"

namespace stretto::experiment {

/// How many sentences a BLEU needs.
ScoreNoise noise_of_bleu();

/// What translation tells the linter; its rules derive from it (translation_rules.cpp).
class TranslationFacts : public TaskRules {
 public:
  std::string name_of_data() const override { return "text"; }
  FileSizes file_sizes(const Experiment& experiment) const override;
  ScoredSamples scored_samples(const Experiment& experiment, const FileSizes& files) const override;
  LabelSmoothing label_smoothing(const Experiment& experiment,
                                 const FileSizes& files) const override;
  MicroBatchSamples samples_of_micro_batch(const Experiment& experiment) const override;
  int64_t num_output_heads(const Experiment& experiment) const override;
  std::vector<std::string> deciding_keys(const Experiment& experiment,
                                         const std::string& deciding_key) const override;
  std::optional<TiedEmbedding> tied_embedding(const Experiment& experiment) const override;
  std::string zero_gain_key(const Experiment& experiment) const override;
  std::string two_passes_key(const Experiment& experiment) const override;
  std::vector<NormedUnits> normed_units(const Experiment& experiment) const override;
  std::string batch_norm_setting() const override;
};

}  // namespace stretto::experiment
