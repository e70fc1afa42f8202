#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/images/image_set.h"
#include "data/labelled/labels.h"
#include "families/image_classification/engine/image_pixels.h"
#include "families/image_classification/engine/image_scores.h"
#include "families/image_classification/image_classification_options.h"
#include "models/images/image_model.h"
#include "tasks/family.h"

namespace stretto::tasks {

/// One class of each picture.
class ImageClassificationTask final : public FamilyTask {
 public:
  /// Throws Error(kUsage) where some micro-batch has one picture, and batch norm would normalise it
  /// alone.
  ImageClassificationTask(const experiment::Experiment& experiment, const Assets& assets,
                          const CommandContext& context);

  torch::nn::Module& model() override { return *model_; }
  const data::BatchSource& train_batches() override { return *train_batches_; }
  std::vector<std::string> replaceable_parts() const override { return {"head.*"}; }
  std::vector<std::string> statistics() const override { return {"right"}; }
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
  std::vector<runs::MatchedTable> matched_tables(const runs::InitialRun& /*run*/) const override {
    return {};
  }

 private:
  void start_from_pictures();
  void warn_of_shared_pictures() const;
  std::vector<report::Sample> samples(const train::ScoreTable& table) const;

  const experiment::Experiment experiment_;
  const experiment::ImageClassificationOptions options_;
  const uint64_t seed_;
  const Assets assets_;
  const CommandContext context_;
  const data::Labels classes_;
  std::shared_ptr<models::ImageModel> model_;
  std::shared_ptr<const data::ImageSet> train_;
  std::unique_ptr<data::BatchSource> train_batches_;
  ImageBatches valid_;  ///< empty: there is none
};

/// The pictures of paths.
/// @param key    of the paths: "data.train"
/// @param tells  whether this process logs what is odd about them
std::shared_ptr<const data::ImageSet> open_image_set(const data::ImageDataOptions& options,
                                                     const std::string& key,
                                                     const std::vector<std::string>& paths,
                                                     const data::Labels& classes, bool tells);

}  // namespace stretto::tasks
