#include "families/image_classification/lone_picture.h"

#include "base/error.h"
#include "base/text.h"
#include "families/image_classification/image_classification_options.h"

namespace stretto::experiment {
namespace {

// Whether the last micro-batch of an epoch is normalised together with others, as far as is known.
bool joins_last_batch(const Experiment& experiment, int64_t num_batches, int64_t processes) {
  if (experiment.dist.batch_norm != "all" || processes == 1) return false;
  if (processes == 0) return true;
  const int64_t of_update = experiment.train.update_freq, rest = num_batches % of_update;
  return (rest == 0 ? of_update : rest) % processes == 0;
}

}  // namespace

bool has_learning_batch_norm(const Experiment& experiment) {
  const bool may_freeze = !experiment.train.freeze.empty() || !experiment.train.unfreeze.empty();
  return models::has_batch_norm(images_of(experiment).model) && !may_freeze;
}

void require_no_lone_picture(const Experiment& experiment, const data::BatchSource& batches,
                             int64_t pictures, int64_t processes) {
  if (!has_learning_batch_norm(experiment)) return;
  if (joins_last_batch(experiment, batches.num_batches(), processes)) return;
  const int64_t last = batches.num_batches() - 1;
  if (batches.sample_ids(/*epoch=*/0, last).size() > 1) return;
  throw Error(ExitCode::kUsage,
              "data.max_samples: the last micro-batch of an epoch of " +
                  counted(pictures, "picture") +
                  " has one picture, of which batch norm has no variance",
              "set data.drop_last = true, or another data.max_samples");
}

}  // namespace stretto::experiment
