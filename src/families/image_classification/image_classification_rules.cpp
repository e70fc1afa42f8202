#include "families/image_classification/image_classification_rules.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "data/images/image_batches.h"
#include "data/images/image_files.h"
#include "data/images/image_inputs.h"
#include "data/images/image_set.h"
#include "data/images/image_table.h"
#include "data/labelled/labels.h"
#include "experiment/preflight.h"
#include "experiment/rules.h"
#include "families/image_classification/image_classification_display.h"
#include "families/image_classification/image_classification_options.h"
#include "families/image_classification/image_classification_taken.h"
#include "families/image_classification/image_sizes.h"
#include "families/image_classification/lone_picture.h"
#include "models/images/image_conflicts.h"

namespace stretto::experiment {
namespace {

// What can be looked at within the second that `check` may take.
constexpr int64_t kFewPictures = 5000;
constexpr uintmax_t kFewBytes = uintmax_t{64} << 20;

void check_sizes(RuleCheck& c) {
  const auto& own = images_of(c.e);
  const auto check_size = [&](const std::string& key, int64_t size) {
    for (const auto& conflict : models::image_size_conflicts(own.model, key, size, size)) {
      c.wrong(conflict.keys, conflict.what, conflict.hint);
    }
  };
  check_size("augment.image_size", image_size_of(own));
  if (own.augment.test_size > 0) check_size("augment.test_size", own.augment.test_size);
  const auto sizes = read_train_sizes(own.augment.train_sizes);
  if (!sizes.problem.empty()) {
    c.wrong({"augment.train_sizes"}, sizes.problem,
            "give entries such as \"0 128\" and \"10 224\", with ascending epochs");
    return;
  }
  for (const auto& entry : sizes.entries) check_size("augment.train_sizes", entry.size);
}

void check_augmentation(RuleCheck& c) {
  for (const auto& conflict : image::augment_conflicts(images_of(c.e).augment, "augment")) {
    c.wrong(conflict.keys, conflict.what, conflict.hint);
  }
}

void check_lone_pictures(RuleCheck& c) {
  if (images_of(c.e).data.max_samples > 1 || !has_learning_batch_norm(c.e)) return;
  if (c.e.dist.batch_norm == "all") return;
  c.wrong({"data.max_samples", "model.name", "dist.batch_norm", "train.freeze"},
          "batch norm takes its mean and variance from a micro-batch, and one picture has none",
          "raise it, to 16 at least");
}

void check_repeats(RuleCheck& c) {
  const auto& data = images_of(c.e).data;
  if (data.repeats <= data.max_samples) return;
  c.wrong({"data.repeats", "data.max_samples"},
          "a micro-batch of " + counted(data.max_samples, "picture") + " has no room for " +
              std::to_string(data.repeats) + " copies of one",
          "lower it, or raise data.max_samples");
}

void check_classes(RuleCheck& c) {
  auto names = images_of(c.e).data.classes;
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) {
    c.wrong({"data.classes"}, "class `" + printable(*twice, 60) + "` occurs twice",
            "give each class once");
  } else if (!names.empty() && names.front().empty()) {
    c.wrong({"data.classes"}, "a class is empty", "give each class a name");
  }
  const auto wrapped = std::find_if_not(names.begin(), names.end(), data::is_one_line);
  if (wrapped != names.end()) {
    c.wrong({"data.classes"}, "class `" + printable(*wrapped, 60) + "` has a tab or a line end",
            "classes are written one a line: leave it out of the name");
  }
}

// Whether the paths of a key are read within a moment: pictures that lie in files of their own are
// counted, other files weighed. Throws as data::image_inputs().
bool is_quick(const data::ImageDataOptions& options, const std::string& key,
              const std::vector<std::string>& paths) {
  uintmax_t bytes = 0;
  int64_t pictures = 0;
  for (const auto& input : data::image_inputs(options, key, paths)) {
    const bool has_files =
        input.format == data::ImageFormat::kFolder || input.format == data::ImageFormat::kManifest;
    if (has_files) {
      const auto count = data::count_images(options, {input.path}, key);
      pictures += count ? count->pictures : kFewPictures + 1;
    } else {
      std::error_code failed;
      const auto size = std::filesystem::file_size(input.path, failed);
      bytes += failed ? kFewBytes + 1 : size;
    }
    if (bytes > kFewBytes || pictures > kFewPictures) return false;
  }
  return true;
}

class ImagePreflight {
 public:
  ImagePreflight(const Experiment& experiment, const std::vector<config::Problem>& known,
                 const PreflightOptions& how)
      : experiment_(experiment), data_(images_of(experiment).data), known_(known), how_(how) {}

  Preflight run() {
    const bool in_doubt = std::any_of(known_.begin(), known_.end(), [](const auto& problem) {
      return problem.key.starts_with("data.") && problem.key != "data.train" &&
             problem.key != "data.valid" && problem.key != "data.test";
    });
    if (in_doubt) return {};
    look("data.train", Stage::kTraining, data_.train, [&](const auto& table) {
      training_ = table;
      classes_ = data::image_classes(data_, *table);
      found_.most_batches = most_batches(table->size());
      for (const auto& alike : data::labels_alike(classes_->names())) {
        found_.doubts.push_back({data_.classes.empty() ? "data.train" : "data.classes",
                                 "classes " + alike, data::kLabelsAlikeAdvice});
      }
    });
    look_at_last_batch();
    look("data.valid", Stage::kValidation, data_.valid, [&](const auto& table) {
      if (classes_) data::ImageSet(table, *classes_, data::bad_sample_rule(data_));
      if (!training_) return;
      const std::string shared = data::shared_images_text(*training_, *table);
      if (!shared.empty()) {
        found_.doubts.push_back({"data.valid", shared, data::kSharedImagesAdvice});
      }
    });
    return std::move(found_);
  }

 private:
  void look_at_last_batch() {
    if (!training_ || !describes_a_model(known_)) return;
    note_stop(found_, Stage::kTraining, "data.max_samples", [&] {
      const auto batches = data::make_image_batches(std::vector<int32_t>(training_->classes()),
                                                    {.max_samples = data_.max_samples,
                                                     .drop_last = data_.drop_last,
                                                     .repeats = data_.repeats});
      require_no_lone_picture(experiment_, *batches, training_->size(), /*processes=*/0);
    });
  }

  int64_t most_batches(int64_t pictures) const {
    return (pictures + data_.max_samples - 1) / data_.max_samples;
  }

  template <class Take>
  void look(const std::string& key, Stage stage, const std::vector<std::string>& paths,
            const Take& take) {
    if (paths.empty() || config::is_unreliable(known_, key)) return;
    note_stop(found_, stage, key, [&] {
      if (!how_.full && !is_quick(data_, key, paths)) {
        found_.unread.push_back({key, "the pictures and their classes"});
        return;
      }
      const auto table = data::open_images(
          data_, key, paths, how_.keeps ? data::CacheUse::kKeeps : data::CacheUse::kNone);
      if (table->left_out().count > 0) {
        found_.doubts.push_back(
            {key, "left out: " + table->left_out().text(), "mend them, or see data.bad_samples"});
      }
      take(table);
    });
  }

  const Experiment& experiment_;
  const data::ImageDataOptions& data_;
  const std::vector<config::Problem>& known_;
  const PreflightOptions how_;
  std::shared_ptr<const data::ImageTable> training_;
  std::optional<data::Labels> classes_;
  Preflight found_;
};

// Zeros where the files do not tell it, or are missing, which `check` tells elsewhere.
data::ImageCount known_images(const data::ImageDataOptions& data,
                              const std::vector<std::string>& paths, const std::string& key) {
  try {
    return data::count_images(data, paths, key).value_or(data::ImageCount{});
  } catch (const Error&) {
    return {};
  }
}

class ImageClassificationRules final : public TaskRules {
 public:
  void check_model(RuleCheck& check) const override {
    const auto conflicts = models::option_conflicts(images_of(check.e).model);
    for (const auto& conflict : conflicts) check.wrong(conflict.keys, conflict.what, conflict.hint);
    if (conflicts.empty()) check_sizes(check);
    check_lone_pictures(check);
  }

  void check_data(RuleCheck& check) const override {
    check_augmentation(check);
    check_repeats(check);
    check_classes(check);
  }

  void check_training(RuleCheck& check) const override {
    if (!images_of(check.e).data.train.empty()) return;
    check.wrong({"data.train"}, "there are no training pictures", "name folders or files");
  }

  Preflight look_at_data(const Experiment& experiment, const std::vector<config::Problem>& known,
                         const PreflightOptions& how) const override {
    return ImagePreflight(experiment, known, how).run();
  }
  Preflight look_at_files(const Experiment& experiment, const std::vector<config::Problem>& known,
                          const PreflightOptions& how) const override {
    return ImagePreflight(experiment, known, how).run();
  }

  // Headers of few pictures; a start over many looks at them when it has told of itself.
  void prepare_data(const Experiment& experiment) const override {
    const auto& data = images_of(experiment).data;
    for (const auto* paths : {&data.train, &data.valid}) {
      const std::string key = paths == &data.train ? "data.train" : "data.valid";
      if (!paths->empty() && is_quick(data, key, *paths)) data::open_images(data, key, *paths);
    }
  }

  std::vector<ScoreSpec> scores(const Experiment& /*experiment*/) const override {
    return tasks::image_classification_scores();
  }
  ValidationData validation_data(const Experiment& experiment) const override {
    return {.there = !images_of(experiment).data.valid.empty(),
            .name = "pictures for validation",
            .keys = {"data.valid"},
            .remedy = "set data.valid"};
  }
  BatchBound micro_batch(const Experiment& experiment) const override {
    return {.key = "data.max_samples",
            .value = images_of(experiment).data.max_samples,
            .unit = "pictures"};
  }
  MicroBatchSamples samples_of_micro_batch(const Experiment& experiment) const override {
    return {.key = "data.max_samples",
            .most = images_of(experiment).data.max_samples,
            .unit = "picture",
            .usual_size = 1};
  }
  bool has_batch_norm(const Experiment& experiment) const override {
    return models::has_batch_norm(images_of(experiment).model);
  }
  std::string batch_norm_setting() const override { return "model.name = \"resnet\""; }
  std::string zero_gain_key(const Experiment& experiment) const override {
    const auto& model = images_of(experiment).model;
    if (!model.is<models::ResNetOptions>()) return "";
    const auto& options = model.as<models::ResNetOptions>();
    const bool ends_in_norm = models::shape_of(options).version != models::ResNetVersion::kV2;
    return ends_in_norm && !options.zero_gamma ? "model.zero_gamma" : "";
  }

  std::vector<std::string> init_rules(const Experiment& experiment) const override {
    return models::init_of(images_of(experiment).model);
  }
  const nn::LoraOptions* lora(const Experiment& experiment) const override {
    const auto* vit = vit_of(experiment);
    return vit == nullptr ? nullptr : &vit->lora;
  }
  const nn::AdapterOptions* adapter(const Experiment& experiment) const override {
    const auto* vit = vit_of(experiment);
    return vit == nullptr ? nullptr : &vit->adapter;
  }
  ModelWidth model_width(const Experiment& experiment) const override {
    const auto* vit = vit_of(experiment);
    if (vit == nullptr) return {};
    return {.key = "model.d_model", .value = models::sizes_of(*vit).d_model};
  }

  std::vector<ModelDifference> hidden_differences(
      const Experiment& theirs, const Experiment& own,
      const std::vector<std::string>& /*stored*/) const override {
    return image_differences(theirs, own);
  }
  std::vector<TakenValue> values_of_other_model(const OtherModel& other, const Experiment& own,
                                                const config::Origins& given) const override {
    return image_values_of(other, own, given);
  }

  std::string name_of_data() const override { return "pictures"; }
  FileSizes file_sizes(const Experiment& experiment) const override {
    const auto& data = images_of(experiment).data;
    const auto train = known_images(data, data.train, "data.train");
    const auto valid = known_images(data, data.valid, "data.valid");
    return {.epoch = train.pictures,
            .classes = train.classes > 0 ? train.classes : std::ssize(data.classes),
            .validation = std::min(valid.pictures, kCountedSamples)};
  }
  ScoredSamples scored_samples(const Experiment& /*experiment*/,
                               const FileSizes& files) const override {
    return {.count = files.validation, .unit = "picture", .key = "data.valid"};
  }
  LabelSmoothing label_smoothing(const Experiment& experiment,
                                 const FileSizes& files) const override {
    return {.key = "loss.label_smoothing",
            .share = images_of(experiment).loss.label_smoothing,
            .classes = files.classes,
            .one = "class",
            .many = "classes"};
  }

 private:
  static const models::VitOptions* vit_of(const Experiment& experiment) {
    const auto& model = images_of(experiment).model;
    return model.is<models::VitOptions>() ? &model.as<models::VitOptions>() : nullptr;
  }
};

}  // namespace

const TaskRules& image_classification_rules() {
  static const ImageClassificationRules rules;
  return rules;
}

}  // namespace stretto::experiment
