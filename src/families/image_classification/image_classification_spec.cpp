#include "families/image_classification/image_classification_spec.h"

#include <utility>
#include <vector>

#include "config/open_part.h"
#include "data/images/image_table.h"
#include "experiment/data_files.h"
#include "families/image_classification/folders/image_classification_folders.h"
#include "families/image_classification/image_classification_display.h"
#include "families/image_classification/image_classification_options.h"
#include "families/image_classification/image_classification_rules.h"
#include "families/image_classification/image_formats.h"
#include "families/image_classification/requests.h"
#include "families/text/command_options.h"
#include "families/text/model_shapes.h"

namespace stretto::experiment {
namespace {

using tasks::ImageEvalFiles, tasks::ImageInferArguments;

/// An option that families of text have too, with what it means here.
CommandOption with_help(CommandOption option, const char* help) {
  option.help = help;
  return option;
}

FamilyCommand eval_of_images() {
  return {.options = {command_option(&ImageEvalFiles::data,
                                     with_help(data_option(), "of pictures a folder, too")),
                      command_option(&ImageEvalFiles::predictions,
                                     with_help(predictions_option(),
                                               "of pictures where each is, its class, what was "
                                               "predicted, and the probability of that"))}};
}

FamilyCommand infer_of_images() {
  return {.options = {command_option(&ImageInferArguments::nbest,
                                     with_help(nbest_option(), "most probable classes")),
                      command_option(&ImageInferArguments::scores,
                                     with_help(scores_option(),
                                               "of pictures the probability of each class that "
                                               "is printed, behind it"))},
          .batch_keys = {"eval.max_samples"}};
}

std::vector<data::DataFile> files_of_images(const Experiment& experiment) {
  return data::image_data_files(images_of(experiment).data, files_of_path_keys(experiment));
}

PlannedWork work_of_images(const Experiment& experiment) {
  return {.units = static_cast<double>(images_of(experiment).data.max_samples),
          .key = "data.max_samples"};
}

// A filter of a convolution sees 3 x 3 pixels of all channels. Depths of residual networks are
// those that were published, and stay.
ModelShape shape_of_images(const Experiment& experiment) {
  const models::ImageModelOptions& model = images_of(experiment).model;
  constexpr double kPixels = 9;
  ModelShape shape;
  if (model.is<models::VitOptions>()) {
    const models::VitSizes sizes = models::sizes_of(model.as<models::VitOptions>());
    return shape_of_layers(sizes.num_layers, sizes.d_model, sizes.num_heads, sizes.ffn_dim);
  }
  if (model.is<models::ResNetOptions>()) {
    const models::ResNetShape network = models::shape_of(model.as<models::ResNetOptions>());
    add_width(shape, "model.base_width", network.stem_width, 8);
    shape.fan_in = kPixels * static_cast<double>(network.stage_width);
  }
  if (model.is<models::AirbenchOptions>()) {
    const models::AirbenchSizes sizes = models::sizes_of(model.as<models::AirbenchOptions>());
    add_width(shape, "model.width1", sizes.width1, 8);
    add_width(shape, "model.width2", sizes.width2, 8);
    add_width(shape, "model.width3", sizes.width3, 8);
    shape.fan_in = kPixels * static_cast<double>(sizes.width2);
  }
  return shape;
}

}  // namespace

FamilySpec image_classification_spec() {
  return {.options = config::open_alternative<ImageClassificationOptions>(),
          .also_called = {"image", "images", "imagenet", "cifar", "cifar10", "vision",
                          "image2label", "picture_classification"},
          .rules = &image_classification_rules,
          .display = [](const Experiment& /*e*/) { return tasks::image_classification_display(); },
          .eval = eval_of_images(),
          .infer = infer_of_images(),
          .plan = FamilyPlan{.work = &work_of_images, .shape = &shape_of_images},
          .folders = &interchange::image_classification_folders,
          .formats = image_formats(),
          .data_files = &files_of_images};
}

}  // namespace stretto::experiment
