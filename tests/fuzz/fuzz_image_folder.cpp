// libFuzzer target: a folder of a model of pictures whose files are the parts of the input, or its
// file of weights alone, imported. Error is the only exception that may come out, and each tensor
// that is imported has all of its bytes. What was imported is described and, of some sizes of the
// input, written again.
//
// Parts stand between lines of `---`: config.json, preprocessor_config.json, the tensors of
// model.safetensors, a line each: a name and sizes, and the names of classes. An empty part is a
// file that is missing; without a config.json the file of weights is read alone.
#include <array>
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

/// In one of the formats. Files that are made durable take time: of every eighth size alone.
void write_again(const interchange::ImportedRun& run, const std::filesystem::path& folder,
                 size_t size) {
  constexpr std::array kFormats{"hf", "timm", "torchvision"};
  constexpr size_t kEvery = 8;
  if (size % kEvery != 0) return;
  const auto& classes = experiment::images_of(run.experiment).data.classes;
  try {
    interchange::export_image({.description = interchange::description_of(run.experiment, classes),
                               .tensors = run.tensors},
                              kFormats[size / kEvery % kFormats.size()], "auto", folder / "out");
  } catch (const Error&) {
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
      if (!lenient) write_again(run, folder, size);
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
