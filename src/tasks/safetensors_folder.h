#pragma once

#include <string>

#include "tasks/exported_run.h"
#include "tasks/requests.h"

/// `stretto export --format safetensors`: a model of any family for programs that read tensors.
namespace stretto::tasks {

/// Writes a new folder with `model.safetensors`, `config.toml` and `tokenizer/`. Packed weights
/// stay as they are stored (store/quantised_file.h), unless `--weights float32` asks for others;
/// LoRA is merged into others. Returns what was written, in words. Throws Error(kUsage) where the
/// folder is there already, and for packed weights with LoRA beside them; Error(kBadData),
/// Error(kIo).
std::string export_safetensors(const ExportedRun& run, const ExportRequest& request);

}  // namespace stretto::tasks
