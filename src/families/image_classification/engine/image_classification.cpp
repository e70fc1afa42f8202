#include "families/image_classification/engine/image_classification.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/hash.h"
#include "base/log.h"
#include "base/log_silence.h"
#include "base/random.h"
#include "base/random_streams.h"
#include "base/text.h"
#include "data/images/image_batches.h"
#include "data/images/image_table.h"
#include "experiment/num_threads.h"
#include "experiment/scaled_rate.h"
#include "families/image_classification/engine/image_run.h"
#include "families/image_classification/engine/image_samples.h"
#include "families/image_classification/image_classification_display.h"
#include "families/image_classification/image_sizes.h"
#include "families/image_classification/lone_picture.h"
#include "image/views.h"
#include "models/heads/label.h"
#include "models/registry.h"
#include "tasks/left_out.h"

namespace stretto::tasks {
namespace {

// Pictures of training on one sheet, which a report keeps up to a MiB (report/media.h).
constexpr int64_t kLeastShown = 4, kMostShown = 32, kMostShownPixels = 320'000;

int64_t num_shown(int64_t side) {
  return std::clamp(kMostShownPixels / (side * side), kLeastShown, kMostShown);
}

// "6: circle, cross, ring, …"
std::string classes_text(const data::Labels& classes) {
  constexpr size_t kMost = 20;
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(classes.names().size(), kMost); ++i) {
    names.push_back(printable(classes.names()[i], 60));
  }
  if (classes.names().size() > kMost) names.push_back("…");
  return with_thousands(classes.size()) + ": " + join(names, ", ");
}

std::string sizes_text(const experiment::ImageClassificationOptions& options) {
  std::vector<std::string> sizes;
  for (const int64_t size : experiment::train_sizes_of(options)) {
    sizes.push_back(std::to_string(size) + " x " + std::to_string(size));
  }
  const int64_t test = experiment::test_size_of(options);
  return join(sizes, ", ") + "; in validation " + std::to_string(test) + " x " +
         std::to_string(test);
}

}  // namespace

std::shared_ptr<const data::ImageSet> open_image_set(const data::ImageDataOptions& options,
                                                     const std::string& key,
                                                     const std::vector<std::string>& paths,
                                                     const data::Labels& classes, bool tells) {
  std::optional<log::Silence> silence;
  if (!tells) silence.emplace();
  return std::make_shared<const data::ImageSet>(data::open_images(options, key, paths), classes,
                                                data::bad_sample_rule(options));
}

ImageClassificationTask::ImageClassificationTask(const experiment::Experiment& experiment,
                                                 const Assets& assets,
                                                 const CommandContext& context)
    : experiment_(experiment),
      options_(experiment::images_of(experiment)),
      seed_(static_cast<uint64_t>(experiment.run.seed)),
      assets_(assets),
      context_(context),
      classes_(classes_of(assets)),
      model_(make_image_network(experiment, classes_.size(), context.device, FirstWeights::kDrawn)),
      train_(open_image_set(options_.data, "data.train", options_.data.train, classes_,
                            context.group.is_root())) {
  const auto& data = options_.data;
  train_batches_ =
      mixed_images(data::make_image_batches(train_->labels(), {.max_samples = data.max_samples,
                                                               .drop_last = data.drop_last,
                                                               .repeats = data.repeats,
                                                               .shuffle = data::Shuffle::kEachEpoch,
                                                               .seed = seed_}),
                   options_, seed_);
  experiment::require_no_lone_picture(experiment, *train_batches_, train_->size(),
                                      context.group.size());
  start_from_pictures();
  if (data.valid.empty()) return;
  valid_ = image_batches(
      open_image_set(data, "data.valid", data.valid, classes_, context.group.is_root()), options_);
  warn_of_shared_pictures();
}

void ImageClassificationTask::warn_of_shared_pictures() const {
  if (!context_.group.is_root()) return;
  const std::string shared = data::shared_images_text(train_->table(), valid_.set->table());
  if (!shared.empty()) log::warn("data.valid: " + shared + "; " + data::kSharedImagesAdvice);
}

// The same pictures on every rank, drawn from all: sets are often in the order of their classes.
// A checkpoint's weights come later, and are kept.
void ImageClassificationTask::start_from_pictures() {
  const int64_t count = std::min(models::num_first_images(options_.model), train_->size());
  if (count == 0) return;
  experiment::ImageClassificationOptions plain = options_;
  plain.augment.test_crop = "center";
  plain.augment.test_resize.resize(std::min<size_t>(plain.augment.test_resize.size(), 1));
  plain.augment.test_flip = false;
  plain.augment.test_shift = 0;
  const at::Tensor pixels = empty_pixels(count, experiment::image_size_of(options_));
  const Permutation drawn(static_cast<uint64_t>(train_->size()),
                          mix64(seed_, streams::kFirstPictures));
  int64_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto sample = static_cast<int64_t>(drawn(static_cast<uint64_t>(i)));
    const auto decoded = train_->load(sample, image::test_decode_options(plain.augment));
    if (decoded) write_test_views(*decoded, plain, found++, pixels);
  }
  if (found > 0) model_->start_from(pixels.narrow(0, 0, found).to(context_.device));
}

std::vector<std::string> ImageClassificationTask::counters() const {
  return {kPictures, kUnreadablePictures};
}

train::TaskWords ImageClassificationTask::words() const {
  return {.sample = "picture",
          .samples = "pictures",
          .smaller_batches =
              "lower data.max_samples (raise train.update_freq by the same factor to keep the "
              "batch), or augment.image_size",
          .odd_samples = {},
          .stabilising_setting = {}};
}

std::vector<std::pair<std::string, std::string>> ImageClassificationTask::show(
    const data::Batch& batch, int64_t index) const {
  const int64_t sample = batch.sample_ids.at(static_cast<size_t>(index));
  return {{"picture", train_->table().place(sample)},
          {"label", classes_.name(train_->label(sample))}};
}

train::Prepared ImageClassificationTask::prepare(data::Batch batch) const {
  const int64_t size = experiment::train_size_of(options_, batch.epoch);
  const int64_t rows = model_->has_dropout() ? model_->rows_per_sample(size, size) : 0;
  return prepare_training_images(std::move(batch), *train_, options_, seed_, rows);
}

train::Sums ImageClassificationTask::loss(const train::Prepared& batch,
                                          const train::StepContext& context) {
  const ImageTensors tensors = image_tensors(batch);
  const at::Tensor logits = model_->forward(
      {.pixels = tensors.pixels, .row_keys = tensors.row_keys, .epoch = batch.batch().epoch},
      {.training = true, .dropout_key = context.dropout_key()});
  const models::LabelWeights smoothed{.smoothing = options_.loss.label_smoothing};
  const at::Tensor usable = tensors.labels.ge(0), wanted = tensors.labels.clamp_min(0);
  at::Tensor losses = models::label_cross_entropy(logits, wanted, smoothed).each;
  at::Tensor right = models::is_in_top(logits.detach(), wanted, 1).to(at::kFloat);
  if (tensors.partners.defined()) {  // soft targets
    const at::Tensor& share = tensors.shares;
    const at::Tensor others = models::label_cross_entropy(logits, tensors.partners, smoothed).each;
    const at::Tensor right_others =
        models::is_in_top(logits.detach(), tensors.partners, 1).to(at::kFloat);
    losses = losses * share + others * (1 - share);
    right = right * share + right_others * (1 - share);
  }
  const auto count = batch.batch().num_sequences();
  return {.losses = {(losses * usable).sum()},
          .statistics = {(right * usable).sum()},
          .counts = {count, count - static_cast<int64_t>(num_readable(batch))}};
}

std::vector<double> ImageClassificationTask::weights(const data::Batch& batch) const {
  return {num_readable(batch)};
}

std::vector<train::Score> ImageClassificationTask::measures(const train::Totals& totals) const {
  return {{.name = image_score::kAccuracy,
           .value = totals.statistics.front() / std::max(1.0, totals.weights.front())}};
}

train::Validation ImageClassificationTask::validate() {
  const auto table =
      score_images({model_}, valid_, options_,
                   {.device = context_.device, .group = context_.group, .loading = loading()});
  return {.scores = scores_of_images(table),
          .counts = {{kPictures, valid_.set->size()},
                     {kUnreadablePictures, num_unreadable(table, valid_.set->size())}},
          .samples = samples(table)};
}

std::vector<report::Sample> ImageClassificationTask::samples(const train::ScoreTable& table) const {
  const int64_t most = experiment_.report.samples;
  if (most == 0 || !context_.group.is_root()) return {};
  auto samples = wrong_samples(table, *valid_.set, classes_, options_, most);
  const data::Batch first = train_batches_->load_for_training(/*epoch=*/0, 0);
  const int64_t shown = num_shown(experiment::train_size_of(options_, first.epoch));
  const auto seen = prepare(data::part(first, 0, std::min(first.num_sequences(), shown)));
  samples.insert(samples.begin() + 1, {report::Sample(seen_sample(seen.tensor(0), options_)),
                                       report::Sample(filter_sample(model_->first_filters()))});
  return samples;
}

std::vector<distributed::Fact> ImageClassificationTask::data_facts() const {
  const auto of = [](const data::ImageSet& set) {
    return hex64(set.table().hash()) + " of " + counted(set.size(), "picture");
  };
  std::vector<distributed::Fact> facts{{"training pictures", of(*train_)}};
  if (valid_.set) facts.push_back({"validation pictures", of(*valid_.set)});
  facts.push_back({"micro-batches an epoch", std::to_string(train_batches_->num_batches())});
  return facts;
}

std::vector<std::pair<std::string, std::string>> ImageClassificationTask::facts() const {
  std::vector<std::pair<std::string, std::string>> facts{
      {"parameters", with_thousands(models::num_parameters(*model_))},
      {"classes", classes_text(classes_)},
      {"pixels", sizes_text(options_)}};
  const auto add = [&](const std::string& name, const data::ImageSet& set) {
    facts.emplace_back(name, with_thousands(set.size()));
    if (const auto left_out = set.left_out(); left_out.count > 0) {
      facts.emplace_back(name + ", left out", left_out.text());
    }
  };
  add("training pictures", *train_);
  if (valid_.set) add("validation pictures", *valid_.set);
  if (options_.augment.decoding == "scaled") {
    facts.emplace_back("JPEG in training", "decoded at 1/2, 1/4 or 1/8 where that is large enough");
  }
  facts.emplace_back("micro-batches an epoch", with_thousands(train_batches_->num_batches()));
  return facts;
}

std::vector<std::string> ImageClassificationTask::notes() const {
  std::vector<std::string> notes;
  add_note_of_left_out("training pictures", train_->left_out(), notes);
  if (valid_.set) add_note_of_left_out("validation pictures", valid_.set->left_out(), notes);
  return notes;
}

data::Loading ImageClassificationTask::loading() const {
  return data::image_loading(options_.data, experiment::num_threads(experiment_));
}

int64_t ImageClassificationTask::update_bound() const {
  return std::llround(experiment::ScaledRate(experiment_).batch);
}

}  // namespace stretto::tasks
