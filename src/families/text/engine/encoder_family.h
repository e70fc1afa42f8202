#pragma once

#include <memory>
#include <string>
#include <vector>

#include "families/text/engine/run_model.h"
#include "families/text/engine/text_family.h"

namespace stretto::tasks {

/// What the families on encoded texts answer in the same way. A family adds its task, its commands,
/// and its head.
class EncoderFamily : public TextFamily {
 public:
  int embed(const EmbedRequest& request, const CommandContext& context) const override;
  models::ModelCost model_cost(const CostRequest& request) const override;
  std::shared_ptr<torch::nn::Module> make_network(const experiment::Experiment& experiment,
                                                  const Assets& assets,
                                                  bool draws_weights) const override;
  std::string export_model(const ExportedRun& run, const ExportRequest& request) const override;
  void require_room(const std::filesystem::path& place, const experiment::Experiment& other,
                    const experiment::Experiment& own) const override;

  /// Names of the model's outputs, in their order, where a run keeps some.
  /// @param assets  of the run folder
  virtual std::vector<std::string> output_names(const Assets& /*assets*/) const { return {}; }

 protected:
  /// The head of an experiment's model.
  /// @param assets  files of the run; null before there are any: sizes may then be any
  virtual TextHead head(const experiment::Experiment& experiment, const Assets* assets) const = 0;
  /// Rows of a sequence of so many tokens that the head reads (models::TextLengths).
  virtual double head_rows(const experiment::Experiment& experiment, double tokens) const = 0;

  void require_trainable(const experiment::Experiment& experiment) const override;
  PlannedModel planned_model(const experiment::Experiment& experiment,
                             int64_t num_ids) const override;
  std::vector<std::string> replaceable_parts() const override { return text_parts_of_tasks(); }
};

}  // namespace stretto::tasks
