#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nn/embedding.h"
#include "nn/linear.h"
#include "tasks/family.h"
#include "tests/add_a_task/label_lines.h"
#include "tests/add_a_task/labelling_options.h"

namespace stretto::tasks {

/// The label of a line of bytes: logits = W mean(e_b) + c, over the bytes b of the line.
///
/// L labels, D model.d_model. Parameters: `bytes.weight` [256, D], `output.weight` [L, D],
/// `output.bias` [L].
class LabelModel : public torch::nn::Module {
 public:
  LabelModel(const nn::Init& init, int64_t d_model, int64_t num_labels);

  /// One row of logits for each line: [lines, L].
  at::Tensor forward(const data::PackedTokens& lines) const;

 private:
  nn::Embedding bytes_{nullptr};
  nn::Linear output_{nullptr};
};

std::shared_ptr<LabelModel> make_label_model(const experiment::Experiment& experiment,
                                             const Labels& labels, at::Device device);

/// Means over lines.
struct LabelScore {
  double loss = 0, accuracy = 0;
};
/// The batches are shared out among the processes of the command.
LabelScore score_lines(const LabelModel& model, const data::BatchSource& lines,
                       const CommandContext& context);
/// The lines of an evaluation in batches.
std::unique_ptr<data::BatchSource> batches_to_score(std::shared_ptr<const LinesByLength> lines);

/// The best label of a line.
struct LineLabel {
  int64_t number = 0;
  bool is_finite = true;  ///< whether the logits of all labels are
};
std::vector<LineLabel> best_labels(const LabelModel& model, const data::PackedTokens& lines);

/// Training as the loop sees it: cross entropy of labels, and how many are right.
class LabelTask : public FamilyTask {
 public:
  LabelTask(const experiment::Experiment& experiment, const Labels& labels,
            const CommandContext& context);

  torch::nn::Module& model() override { return *model_; }
  const data::BatchSource& train_batches() override { return *train_; }
  std::vector<std::string> statistics() const override { return {"right"}; }
  std::vector<std::string> counters() const override { return {"lines", "bytes"}; }
  train::TaskWords words() const override;
  std::vector<std::pair<std::string, std::string>> show(const data::Batch& batch,
                                                        int64_t index) const override;

  train::Sums loss(const data::Batch& batch, const train::StepContext& context) override;
  std::vector<double> weights(const data::Batch& batch) const override;
  std::vector<train::Score> measures(const train::Totals& totals) const override;
  bool can_validate() const override { return valid_->lines().num_sequences() > 0; }
  train::Validation validate() override;
  Assets assets() const override;

  std::vector<distributed::Fact> data_facts() const override;
  void require_known_data(bool warn) const override;
  std::vector<std::pair<std::string, std::string>> facts() const override;
  int64_t prefetch() const override { return options_.data.prefetch; }
  int64_t update_bound() const override { return update_bound_; }
  std::vector<runs::MatchedTable> matched_tables(const runs::InitialRun& /*run*/) const override {
    return {};
  }

 private:
  std::vector<report::Sample> samples() const;

  const experiment::LabellingOptions options_;
  const Labels labels_;
  const int64_t num_samples_, update_bound_;
  const CommandContext context_;
  std::shared_ptr<LabelModel> model_;
  std::shared_ptr<const LinesByLength> lines_, valid_;
  std::unique_ptr<data::BatchSource> train_, valid_batches_;
};

/// The labels as a file of the run folder, and back.
Assets assets_of(const Labels& labels);
Labels labels_of(const Assets& assets);

}  // namespace stretto::tasks
