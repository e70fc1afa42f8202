#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "config/field.h"
#include "data/bad_samples.h"
#include "data/data_file.h"
#include "experiment/experiment.h"
#include "experiment/family_spec.h"
#include "tasks/family.h"

/// A family on folders of pictures, a folder a class, as tests need it: files that stay where they
/// are (data/media/media_table.h), and are decoded and augmented on the loader's threads; a whole
/// model with batch norm; classes as scores, samples and answers. Pictures are grey, 8 x 8.
namespace stretto::experiment {

struct PictureDataOptions {
  std::vector<std::string> train, valid;
  std::string cache_dir;
  int64_t max_samples = 8;
  int64_t threads = 2;
  std::string bad_samples = "stop";
  int64_t max_bad_samples = 1000;

  static auto fields() {
    using namespace config;
    using O = PictureDataOptions;
    const Meta path{.is_path = true};
    return Fields{
        field(&O::train, "train", "folders with a folder of pictures a class", any(), path),
        field(&O::valid, "valid", "the same for validation", any(), path),
        field(&O::cache_dir, "cache_dir", "of the tables of pictures", any(),
              {.change = Change::kFree, .is_path = true}),
        field(&O::max_samples, "max_samples", "bound of pictures in one micro-batch", at_least(1),
              {.unit = "pictures"}),
        field(&O::threads, "threads", "that decode pictures", between(1, 64),
              {.change = Change::kFree})}
        .with(data::bad_sample_fields<O>());
  }
};

struct PictureModelOptions {
  int64_t channels = 6;

  static auto fields() {
    return config::Fields{config::field(&PictureModelOptions::channels, "channels", "of the planes",
                                        config::at_least(1))};
  }
};

struct PictureOptions {
  static constexpr const char* kName = "picture_classes";

  PictureDataOptions data;
  PictureModelOptions model;

  static auto fields() {
    using config::field;
    using O = PictureOptions;
    return config::Fields{field(&O::data, "data", "pictures"),
                          field(&O::model, "model", "the network")};
  }
};

inline const PictureOptions& pictures_of(const Experiment& experiment) {
  return experiment.task.as<PictureOptions>();
}

/// Keys of scores.
inline constexpr const char* kPictureAccuracy = "accuracy";
inline constexpr const char* kPictureTop2 = "top2";

/// The folders of `data.train` and `data.valid`.
std::vector<data::DataFile> folders_of_pictures(const Experiment& experiment);

FamilySpec picture_spec();

}  // namespace stretto::experiment

namespace stretto::tasks {

inline constexpr int64_t kPictureSide = 8;

/// The columns of a batch of pictures: the class of each, -1 where its file cannot be decoded.
inline constexpr size_t kPictureClass = 0;

const Family& picture_family();

/// What a test does before each update, with its number; empty = nothing.
std::function<void(int64_t)>& before_update();
/// Training pictures that the last task left out.
data::LeftOut& left_out_last();

}  // namespace stretto::tasks
