#pragma once

#include <string>
#include <vector>

#include "experiment/task_rules.h"
#include "experiment/text_sections.h"

namespace stretto::experiment {

/// What `check` asks of every task on encoded texts (experiment/text_sections.h). A family derives
/// from it and adds rules of its own: it calls check_model() and check_data() of this class first.
class TextRules : public TaskRules {
 public:
  /// The model's parts, and the tokenizer's files.
  void check_model(RuleCheck& check) const override;
  /// That texts fit into micro-batches and positions.
  void check_data(RuleCheck& check) const override;
  /// That there is training text, and that the model has a head.
  void check_training(RuleCheck& check) const override;

  ValidationData validation_data(const Experiment& experiment) const override;
  BatchBound micro_batch(const Experiment& experiment) const override;
  std::vector<std::string> init_rules(const Experiment& experiment) const override;
  const nn::LoraOptions* lora(const Experiment& experiment) const override;
  const nn::AdapterOptions* adapter(const Experiment& experiment) const override;
  /// Where the configuration names no tokenizer, and rows of pieces are not matched.
  bool takes_tokenizer_of_other_run(const Experiment& experiment) const override;
  std::vector<ModelDifference> hidden_differences(const Experiment& theirs,
                                                  const Experiment& own) const override;
  ModelWidth model_width(const Experiment& experiment) const override;
};

}  // namespace stretto::experiment
