#pragma once

#include <memory>
#include <string>
#include <vector>

#include "families/text/engine/run_model.h"

namespace stretto::tasks {

/// What the families on encoded texts answer in the same way. A family adds its task, its commands,
/// and its head.
class TextFamily : public Family {
 public:
  /// The tokenizer's files. A family with others adds them.
  Assets first_assets(const experiment::LoadedExperiment& experiment) const override;

  int embed(const EmbedRequest& request, const CommandContext& context) const override;
  std::string memory_advice(MemoryUse use) const override;
  std::vector<optim::TensorName> tensor_names(
      const experiment::Experiment& experiment) const override;
  models::ModelCost model_cost(const CostRequest& request) const override;
  std::shared_ptr<torch::nn::Module> make_network(const experiment::Experiment& experiment,
                                                  const Assets& assets,
                                                  bool draws_weights) const override;
  std::string export_model(const ExportedRun& run, const ExportRequest& request) const override;
  void check_weights(const experiment::CheckRequest& request,
                     experiment::Preflight& found) const override;
  void require_room(const std::filesystem::path& place, const experiment::Experiment& other,
                    const experiment::Experiment& own) const override;

  /// Names of the model's outputs, in their order, where a run keeps some.
  /// @param assets  of the run folder
  virtual std::vector<std::string> output_names(const Assets& /*assets*/) const { return {}; }

 protected:
  /// What a tokenizer of a new run is trained on: TextRules::training_text(), or what the family
  /// has read of it already.
  virtual std::unique_ptr<text::LineSource> training_text(
      const experiment::Experiment& experiment) const;
  /// The head of an experiment's model.
  /// @param assets  files of the run; null before there are any: sizes may then be any
  virtual TextHead head(const experiment::Experiment& experiment, const Assets* assets) const = 0;
  /// Rows of a sequence of so many tokens that the head reads (models::TextLengths).
  virtual double head_rows(const experiment::Experiment& experiment, double tokens) const = 0;
};

}  // namespace stretto::tasks
