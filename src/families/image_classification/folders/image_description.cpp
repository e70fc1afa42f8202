#include "families/image_classification/folders/image_description.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "data/labelled/labels.h"
#include "families/image_classification/image_classification_options.h"
#include "families/image_classification/image_sizes.h"
#include "interchange/described_experiment.h"

namespace stretto::interchange {
namespace {

constexpr size_t kMaxLabelFileBytes = size_t{64} << 20;

}  // namespace

experiment::Experiment experiment_of(const ImageDescription& description) {
  experiment::ImageClassificationOptions sections;
  sections.model = description.model;
  sections.data.classes = description.labels;
  const auto& pictures = description.pictures;
  auto& augment = sections.augment;
  augment.image_size = pictures.size;
  augment.interpolation = pictures.interpolation;
  augment.test_crop = pictures.squashes ? "squash" : "center";
  if (pictures.resize > 0 && !pictures.squashes) {
    augment.test_resize = {static_cast<double>(pictures.resize)};
  }
  augment.mean = pictures.mean;
  augment.std = pictures.std;
  return described_experiment(std::move(sections));
}

ImageDescription description_of(const experiment::Experiment& experiment,
                                std::vector<std::string> labels) {
  const auto& sections = experiment::images_of(experiment);
  const auto& augment = sections.augment;
  ImageDescription description{.name = sections.model.name(), .model = sections.model};
  auto& pictures = description.pictures;
  pictures.size = experiment::test_size_of(sections);
  pictures.squashes = augment.test_crop == "squash";
  if (!augment.test_resize.empty()) {
    // As image/views.h has it: never smaller than what is cut out.
    pictures.resize = std::max(static_cast<int64_t>(augment.test_resize.front()), pictures.size);
  }
  pictures.interpolation = augment.interpolation;
  pictures.mean = augment.mean;
  pictures.std = augment.std;
  description.labels = std::move(labels);
  return description;
}

std::vector<std::string> numbered_labels(int64_t count) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

std::vector<std::string> distinct_labels(std::vector<std::string> names) {
  std::set<std::string> seen;
  for (size_t i = 0; i < names.size(); ++i) {
    std::string name = names[i];
    while (!seen.insert(name).second) name += " (" + std::to_string(i) + ")";
    names[i] = std::move(name);
  }
  return names;
}

void require_label_names(const std::vector<std::string>& names, const std::string& where) {
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string number = std::to_string(i);
    if (names[i].empty() || !is_valid_utf8(names[i])) {
      throw Error(
          ExitCode::kBadData,
          where + ": the name of class " + number +
              (names[i].empty() ? " is empty" : " is not UTF-8: `" + printable(names[i], 60) + "`"),
          "give the classes 0, 1, … a name each");
    }
    if (data::is_one_line(names[i])) continue;
    throw Error(ExitCode::kBadData,
                where + ": the name of class " + number + ", `" + printable(names[i], 60) +
                    "`, has a tab or a line end",
                "classes are written one a line: rename it");
  }
}

std::vector<std::string> read_label_file(const std::filesystem::path& path, int64_t count) {
  std::istringstream text(read_file(path, kMaxLabelFileBytes));
  std::vector<std::string> names;
  for (std::string line; std::getline(text, line);) {
    if (line.ends_with('\r')) line.pop_back();
    names.push_back(std::move(line));
  }
  while (!names.empty() && names.back().empty()) names.pop_back();
  if (std::ssize(names) != count) {
    throw Error(ExitCode::kBadData,
                path.string() + ": " + counted(std::ssize(names), "name") + ", and the model has " +
                    counted(count, "output"),
                "--labels takes a file with the name of each class, a line each");
  }
  require_label_names(names, path.string());
  return distinct_labels(std::move(names));
}

}  // namespace stretto::interchange
