#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "models/images/image_model_options.h"

/// A model of pictures as files of other packages describe it.
namespace stretto::interchange {

/// How many classes a model may have, and layers of any kind.
inline constexpr int64_t kMaxImageLabels = 100'000, kMaxImageLayers = 2000;
inline constexpr int64_t kImageChannels = 3;  ///< pictures are red, green and blue here

/// What becomes of a picture before the model sees it, without chance.
struct ImagePreprocessing {
  int64_t size = 224;  ///< height and width of what the model sees, in pixels
  /// Length of the shorter side before the middle is cut out, in pixels; 0 = as
  /// `augment.test_resize` has it where it is empty.
  int64_t resize = 0;
  bool squashes = false;  ///< the whole picture is resized to the size, without its proportions
  std::string interpolation = "bilinear";  ///< a value of `augment.interpolation`
  std::vector<double> mean{0.485, 0.456, 0.406}, std{0.229, 0.224, 0.225};

  bool operator==(const ImagePreprocessing&) const = default;
};

struct ImageDescription {
  std::string name;  ///< of the class or the function that makes it: "resnet50"
  models::ImageModelOptions model;
  ImagePreprocessing pictures;
  std::vector<std::string> labels;  ///< by number, each of them once
};

/// The experiment of such a model.
experiment::Experiment experiment_of(const ImageDescription& description);
/// The other way: what a run's experiment says of its model and of pictures in validation.
/// @param labels  of the run
ImageDescription description_of(const experiment::Experiment& experiment,
                                std::vector<std::string> labels);

/// "0", "1", …: classes whose names nobody has said.
std::vector<std::string> numbered_labels(int64_t count);
/// The same names, of which one that stands behind an equal one is followed by its number:
/// "crane", …, "crane (517)". ImageNet has such names.
std::vector<std::string> distinct_labels(std::vector<std::string> names);
/// The lines of ImportOptions::labels. Throws Error(kBadData) for another number of names than the
/// model has outputs, and as require_label_names() does; Error(kUsage) where the file is missing.
std::vector<std::string> read_label_file(const std::filesystem::path& path, int64_t count);
/// Throws Error(kBadData) for a name that is empty, no UTF-8 or has a tab or a line end.
/// @param where  file and key, for the message
void require_label_names(const std::vector<std::string>& names, const std::string& where);

}  // namespace stretto::interchange
