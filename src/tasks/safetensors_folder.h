#pragma once

#include <string>
#include <vector>

#include "tasks/exported_run.h"
#include "tasks/requests.h"

/// `stretto export --format safetensors`: a model of any family for programs that read tensors.
namespace stretto::tasks {

inline constexpr const char* kSafetensorsFormat = "safetensors";

/// Values of `--weights` for it: "auto", as the run stores them, and "float32".
std::vector<std::string> safetensors_weights();

/// Writes a new folder with `model.safetensors`, `config.toml` and `tokenizer/`. Packed weights
/// stay as they are stored (store/quantised_file.h), unless they are asked for as float32; LoRA is
/// merged into others. Returns what was written, in words. Throws Error(kUsage) where the folder is
/// there already, and for packed weights with LoRA beside them; Error(kBadData), Error(kIo).
std::string export_safetensors(const ExportedRun& run, const ExportRequest& request);

}  // namespace stretto::tasks
