#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "families/text/engine/run_tokenizer.h"
#include "models/seq2seq_model.h"
#include "optim/group_options.h"
#include "tasks/family.h"

namespace stretto::tasks {

/// A model without memory, as what gives it weights knows it.
struct PlannedModel {
  std::shared_ptr<torch::nn::Module> module;  ///< on the meta device
  std::vector<optim::TiedName> tied;
  std::vector<models::VocabularyTable> tables;  ///< with a row for each token
};

/// What the families on texts with one tokenizer answer in the same way, whatever their model is. A
/// family adds its task and its commands; one whose model is an encoder of text derives from
/// EncoderFamily.
class TextFamily : public Family {
 public:
  /// The tokenizer's files. A family with others adds them.
  Assets first_assets(const experiment::LoadedExperiment& experiment) const override;

  std::string memory_advice(MemoryUse use) const override;
  std::vector<optim::TensorName> tensor_names(
      const experiment::Experiment& experiment) const override;
  void check_weights(const experiment::CheckRequest& request,
                     experiment::Preflight& found) const override;

 protected:
  /// What a tokenizer of a new run is trained on: TextRules::training_text(), or what the family
  /// has read of it already.
  virtual std::unique_ptr<text::LineSource> training_text(
      const experiment::Experiment& experiment) const;
  /// Throws Error(kUsage) for a model that cannot be trained.
  virtual void require_trainable(const experiment::Experiment& /*experiment*/) const {}
  /// The model of an experiment, for a tokenizer of so many ids.
  virtual PlannedModel planned_model(const experiment::Experiment& experiment,
                                     int64_t num_ids) const = 0;
  /// Patterns of tensors that may be another task's (train::Task::replaceable_parts).
  virtual std::vector<std::string> replaceable_parts() const { return {}; }
};

}  // namespace stretto::tasks
