#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/labelled/labels.h"
#include "experiment/experiment.h"
#include "models/images/image_model.h"
#include "runs/run_folder.h"
#include "tasks/family.h"

/// Models of experiments and of run folders.
namespace stretto::tasks {

/// The name under which a run keeps the names of its classes.
inline constexpr const char* kClassesAsset = "labels.json";

/// The classes that a run keeps. Throws Error(kUsage) where the file is missing, Error(kBadData)
/// where it is no list of names.
data::Labels classes_of(const Assets& assets);

std::shared_ptr<models::ImageModel> make_image_network(const experiment::Experiment& experiment,
                                                       int64_t num_classes, at::Device device,
                                                       FirstWeights weights);

/// A run that evaluates and infers: one model, or several whose probabilities are averaged.
struct ImageRun {
  data::Labels classes;
  std::vector<std::shared_ptr<models::ImageModel>> models;
  std::vector<std::filesystem::path> checkpoints;
};
/// Throws as load_checkpoints() and classes_of() do.
ImageRun load_image_run(const experiment::Experiment& experiment, const runs::RunFolder& folder,
                        const std::string& checkpoints, at::Device device);

}  // namespace stretto::tasks
