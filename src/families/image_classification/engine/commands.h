#pragma once

#include <string>

#include "tasks/family.h"

/// The commands of image_classification; each returns an exit code and throws Error for what a user
/// can act on.
namespace stretto::tasks {

/// `stretto eval`: loss and accuracies of labelled pictures.
int evaluate_images(const EvalRequest& request, const CommandContext& context);

/// `stretto infer`: what is on pictures, which are files of the command line, or else paths in the
/// lines of stdin.
int infer_images(const InferRequest& request, const CommandContext& context);

/// `stretto export`: a ResNet or a vision transformer as `transformers`, timm or torchvision have
/// it (families/image_classification/folders/export_image.h).
std::string export_image_model(const ExportedRun& run, const ExportRequest& request);

}  // namespace stretto::tasks
