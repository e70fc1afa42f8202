#include <string>

#include "families/image_classification/engine/commands.h"
#include "families/image_classification/engine/image_run.h"
#include "families/image_classification/folders/export_image.h"
#include "tasks/exported_run.h"

namespace stretto::tasks {

std::string export_image_model(const ExportedRun& run, const ExportRequest& request) {
  run.require_same_tokenizer(run.assets);
  const auto classes = classes_of(run.assets);
  const auto weights = run.weights();
  return interchange::export_image(
      {.description = interchange::description_of(run.experiment, classes.names()),
       .tensors = weights.file.tensors()},
      request.format, request.model_type, request.folder);
}

}  // namespace stretto::tasks
