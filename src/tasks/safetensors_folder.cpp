#include "tasks/safetensors_folder.h"

#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "interchange/new_folder.h"
#include "runs/merged_lora.h"
#include "store/quantised_file.h"
#include "store/safetensors.h"

namespace stretto::tasks {
namespace {

constexpr const char* kModelFile = "model.safetensors";

// What is rounded already cannot take LoRA in without being rounded again.
void require_no_lora(const store::SafetensorsFile& file) {
  if (!runs::has_lora(file)) return;
  throw Error(ExitCode::kUsage,
              "--format safetensors: LoRA stands beside the packed weights of the run",
              "give --weights float32, which merges it");
}

/// The packed tensors as they are stored, and what the file says of them.
void write_packed(const store::SafetensorsFile& file, const std::filesystem::path& path) {
  require_no_lora(file);
  const std::string key(store::kQuantisedKey);
  store::write_safetensors(path, file.tensors(), {{key, file.metadata().at(key)}});
}

}  // namespace

std::string export_safetensors(const ExportedRun& run, const ExportRequest& request) {
  run.require_same_tokenizer(run.assets);
  const auto& stored = run.checkpoint.file("model");
  const bool stays_packed = request.weights == "auto" && store::is_packed(stored);
  interchange::NewFolder made(request.folder);
  if (stays_packed) {
    write_packed(stored, made.path() / kModelFile);
  } else {
    store::write_safetensors(made.path() / kModelFile, run.weights().file.tensors(), {});
  }
  write_file_atomic(made.path() / "config.toml", run.folder.stored_config());
  if (!run.assets.empty()) make_directories(made.path() / "tokenizer");
  for (const auto& [name, bytes] : run.assets) {
    write_file_atomic(made.path() / "tokenizer" / name, bytes);
  }
  made.publish();
  return stays_packed ? "tensors with packed weights" : "tensors";
}

}  // namespace stretto::tasks
