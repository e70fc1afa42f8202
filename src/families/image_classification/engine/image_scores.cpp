#include "families/image_classification/engine/image_scores.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "data/images/image_batches.h"
#include "families/image_classification/engine/image_pixels.h"
#include "families/image_classification/image_classification_display.h"
#include "image/views.h"
#include "models/heads/label.h"

namespace stretto::tasks {
namespace {

constexpr int64_t kFirstOf = 5;  // top5

/// [B * V, L] -> [B, L]
at::Tensor mean_over_views(const at::Tensor& logits, const std::vector<double>& weights) {
  const auto num_views = static_cast<int64_t>(weights.size());
  if (num_views == 1) return logits;
  const at::Tensor shares = at::tensor(weights, logits.options()).log().view({num_views, 1});
  return logits.log_softmax(1).view({-1, num_views, logits.size(1)}).add(shares).logsumexp(1);
}

void fill_table(const ImageOutputs& outputs, const at::Tensor& labels,
                std::span<const int64_t> samples, train::ScoreTable& table) {
  const at::Tensor readable = labels.ge(0), wanted = labels.clamp_min(0);
  const auto fill = [&](ImageNumber number, const at::Tensor& values) {
    const at::Tensor kept = values.to(at::kDouble).masked_fill(readable.logical_not(), 0);
    table.fill(samples, number, kept);
  };
  const at::Tensor& logits = outputs.logits;
  const at::Tensor probabilities = logits.softmax(1);
  const auto [highest, guess] = probabilities.max(1);
  fill(kImageLoss, models::label_cross_entropy(logits, wanted).each);
  fill(kImageReadable, readable);
  fill(kImageRight, models::is_in_top(logits, wanted, 1));
  fill(kImageInTop5, models::is_in_top(logits, wanted, kFirstOf));
  fill(kImageGuess, guess);
  fill(kImageGuessProbability, highest);
  fill(kImageProbability, probabilities.gather(1, wanted.unsqueeze(1)).squeeze(1));
  fill(kImageOverflowed, outputs.overflowed);
}

}  // namespace

ImageBatches image_batches(std::shared_ptr<const data::ImageSet> set,
                           const experiment::ImageClassificationOptions& own) {
  const int64_t most = own.eval.max_samples > 0 ? own.eval.max_samples : own.data.max_samples;
  auto batches = data::make_image_batches(set->labels(), {.max_samples = most});
  return {.set = std::move(set), .batches = std::move(batches)};
}

ImageOutputs image_outputs(const std::vector<std::shared_ptr<models::ImageModel>>& models,
                           const at::Tensor& pixels, const std::vector<double>& view_weights) {
  const auto num_views = static_cast<int64_t>(view_weights.size());
  std::vector<at::Tensor> outputs;
  at::Tensor finite;
  for (const auto& model : models) {
    const at::Tensor logits = model->forward({.pixels = pixels}, {});
    const at::Tensor of_views = logits.isfinite().all(1).view({-1, num_views}).all(1);
    finite = finite.defined() ? finite.logical_and(of_views) : of_views;
    outputs.push_back(mean_over_views(logits, view_weights));
  }
  return {.logits = models::mean_label_logits(models::LabelTarget::kOne, outputs),
          .overflowed = finite.logical_not().to(at::kDouble)};
}

train::ScoreTable score_images(const std::vector<std::shared_ptr<models::ImageModel>>& models,
                               const ImageBatches& batches,
                               const experiment::ImageClassificationOptions& own,
                               train::EvaluationSetup setup) {
  const auto weights = image::test_weights(own.augment);
  setup.prepare = [&](data::Batch batch) {
    return prepare_test_images(std::move(batch), *batches.set, own);
  };
  const auto score = [&](int64_t /*part*/, std::span<const train::Prepared> read,
                         train::ScoreTable& table) {
    const ImageTensors tensors = image_tensors(read.front());
    fill_table(image_outputs(models, tensors.pixels, weights), tensors.labels,
               read.front().batch().sample_ids, table);
  };
  return train::evaluate(train::parts_of(*batches.batches),
                         train::ScoreTable(batches.set->size(), kNumImageNumbers), setup, score);
}

std::vector<train::Score> scores_of_images(const train::ScoreTable& table) {
  const double readable = std::max(1.0, table.sum(kImageReadable));
  return {{.name = image_score::kLoss, .value = table.sum(kImageLoss) / readable},
          {.name = image_score::kAccuracy, .value = table.sum(kImageRight) / readable},
          {.name = image_score::kTop5, .value = table.sum(kImageInTop5) / readable}};
}

int64_t num_unreadable(const train::ScoreTable& table, int64_t size) {
  return size - std::llround(table.sum(kImageReadable));
}

}  // namespace stretto::tasks
