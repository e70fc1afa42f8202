#pragma once

#include <deque>
#include <filesystem>
#include <string>
#include <vector>

#include "store/safetensors.h"
#include "store/torch_file.h"

namespace stretto::store {

/// The weights of a folder that `transformers` saved: `model.safetensors`, or those that
/// `model.safetensors.index.json` lists (shards), or `pytorch_model.bin` or the files of its index.
/// Safetensors come first where both are there.
class WeightFiles {
 public:
  /// @param place  the folder, or one file of weights alone (is_weight_file())
  /// Throws Error(kUsage) when the folder has none of them, Error(kBadData) for a damaged index (a
  /// path in it, a tensor that its file does not have, one that two files have) and as the readers
  /// of the files do.
  explicit WeightFiles(const std::filesystem::path& place);

  const std::vector<TensorView>& tensors() const { return tensors_; }  ///< of all files
  const std::vector<std::filesystem::path>& paths() const { return paths_; }

 private:
  void read_one(const std::filesystem::path& path);
  void read_index(const std::filesystem::path& path);

  std::vector<std::filesystem::path> paths_;
  std::deque<SafetensorsFile> safetensors_;
  std::deque<TorchFile> torch_files_;
  std::vector<TensorView> tensors_;
};

/// Whether a path is a file whose name says that it holds weights: `.safetensors`, or one of
/// `torch.save` (`.pth`, `.pt`, `.th`, `.bin`).
bool is_weight_file(const std::filesystem::path& path);

/// For a folder that `transformers` saved, with a `config.json` that has a `model_type` or
/// `architectures`: the command that makes a run of it, as advice for whoever gave it as a run.
/// Empty for any other folder.
std::string import_advice(const std::filesystem::path& folder);

}  // namespace stretto::store
