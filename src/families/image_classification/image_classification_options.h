#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/field.h"
#include "data/images/image_data_options.h"
#include "experiment/experiment.h"
#include "image/augment_options.h"
#include "models/images/image_model_options.h"

namespace stretto::experiment {

/// `[augment]`: from a picture to the square that the model sees.
struct ImageAugmentOptions : image::AugmentOptions {
  using Inherited = config::Bases<image::AugmentOptions>;

  int64_t image_size = 0;
  std::vector<std::string> train_sizes;
  int64_t test_size = 0;

  static auto fields() {
    using namespace config;
    using O = ImageAugmentOptions;
    const auto size = between(0, 16384);
    return Fields{
        field(&O::image_size, "image_size",
              "height and width of what the model sees; 0 = as models of this kind are published",
              size, {.unit = "pixels"})
            .also_called({"img_size", "input_size", "crop_size", "train_crop_size", "resolution"}),
        field(&O::train_sizes, "train_sizes",
              "progressive resizing: \"EPOCH SIZE\" gives training pictures this height and width "
              "from that epoch on, counted from 0; before the first of them, and empty: image_size")
            .also_called({"progressive_resizing", "progressive_resize"}),
        field(&O::test_size, "test_size",
              "height and width of what the model sees in validation and inference; 0 = image_size",
              size, {.unit = "pixels", .change = Change::kScoring})
            .also_called({"val_crop_size", "val_img_size", "test_input_size"}),
    }
        .with(image::AugmentOptions::fields());
  }
};

/// `[loss]`: cross entropy.
struct ImageLossOptions {
  double label_smoothing = 0;

  static auto fields() {
    using namespace config;
    using O = ImageLossOptions;
    return Fields{
        field(&O::label_smoothing, "label_smoothing",
              "probability spread evenly over all classes but the right one", fraction())
            .also_called({"smoothing", "label_smoothing_factor", "label_smooth"}),
    };
  }
};

/// What `[eval]` has beside experiment/eval_options.h.
struct ImageEvalOptions {
  int64_t max_samples = 0;

  static auto fields() {
    using namespace config;
    using O = ImageEvalOptions;
    return Fields{
        field(&O::max_samples, "max_samples",
              "pictures of one validation batch; 0 = as data.max_samples", at_least(0),
              {.unit = "pictures", .change = Change::kScoring})
            .also_called({"eval_batch_size", "valid_batch_size", "validation_batch_size",
                          "per_device_eval_batch_size", "test_batch_size", "val_batch_size"}),
    };
  }
};

/// The sections of a configuration with `task.name = "image_classification"`, beside those that
/// every experiment has.
struct ImageClassificationOptions {
  static constexpr const char* kName = "image_classification";

  data::ImageDataOptions data;
  ImageAugmentOptions augment;
  models::ImageModelOptions model;
  ImageLossOptions loss;
  ImageEvalOptions eval;

  static auto fields() {
    using config::field;
    using O = ImageClassificationOptions;
    return config::Fields{
        field(&O::data, "data", "labelled pictures").also_called({"dataset", "datasets"}),
        field(&O::augment, "augment", "what the model sees of a picture")
            .also_called({"image", "images", "augmentation", "transform", "preprocessing"}),
        models::with_image_names_elsewhere(field(&O::model, "model", "the network"))
            .also_called({"network", "architecture"}),
        field(&O::loss, "loss", "what is minimised").also_called({"criterion", "objective"}),
        field(&O::eval, "eval", "validation while training"),
    };
  }
};

inline const ImageClassificationOptions& images_of(const Experiment& experiment) {
  return experiment.task.as<ImageClassificationOptions>();
}

}  // namespace stretto::experiment
