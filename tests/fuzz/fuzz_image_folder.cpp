// libFuzzer target: a folder of a model of pictures whose files are the parts of the input, or its
// file of weights alone, imported. Error is the only exception that may come out, and each tensor
// that is imported has all of its bytes. What was imported is described and, where a format can
// express it, written again.
//
// Parts stand between lines of `---`: config.json, preprocessor_config.json, the tensors of
// model.safetensors, a line each: a name and sizes, and the names of classes. An empty part is a
// file that is missing; without a config.json the file of weights is read alone.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/error.h"
#include "families/image_classification/folders/export_image.h"
#include "families/image_classification/folders/import_image.h"
#include "families/image_classification/image_classification_options.h"
#include "interchange/import_folder.h"
#include "tests/fuzz/folder_parts.h"

namespace {

using namespace stretto;

void write_again(const interchange::ImportedRun& run, const std::filesystem::path& folder) {
  for (const char* format : {"hf", "timm", "torchvision"}) {
    const auto place = folder / format;
    try {
      const auto& classes = experiment::images_of(run.experiment).data.classes;
      interchange::export_image(
          {.description = interchange::description_of(run.experiment, classes),
           .tensors = run.tensors},
          format, "auto", place);
    } catch (const Error&) {
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stretto::testing;
  const auto& folder = empty_folder();
  const auto parts = parts_of({reinterpret_cast<const char*>(data), size}, 4);
  write_text(folder / "config.json", parts[0]);
  write_text(folder / "preprocessor_config.json", parts[1]);
  write_tensors(folder / "model.safetensors", parts[2]);
  write_text(folder / "labels.txt", parts[3]);
  const auto place = parts[0].empty() ? folder / "model.safetensors" : folder;
  for (const bool lenient : {false, true}) {
    try {
      interchange::ImportOptions options{.ignore_extra = lenient, .allow_missing = lenient};
      if (lenient && !parts[3].empty()) options.labels = folder / "labels.txt";
      const auto run = interchange::import_image(place, options);
      require_whole(run.tensors);
      if (!lenient) write_again(run, folder / "out");
    } catch (const Error&) {
    }
    try {
      interchange::describe_image_model(place, {});
    } catch (const Error&) {
    }
  }
  std::filesystem::remove_all(folder);
  return 0;
}
