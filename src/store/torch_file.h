#pragma once

#include <deque>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "store/pickle_tensors.h"
#include "store/safetensors.h"

namespace stretto::store {

/// The tensors of a file that `torch.save` wrote (`.bin`, `.pt`, `.pth`): a zip archive with
/// `data.pkl` and `data/0`, `data/1`, …, or the format of PyTorch before 1.6. The bytes that the
/// pickle refers to are taken as they are; nothing is executed (store/pickle_tensors.h).
class TorchFile {
 public:
  /// A file, or a folder into which such an archive was unpacked.
  /// Throws Error(kUsage) when absent, Error(kBadData) that says what is damaged, or what besides
  /// tensors the file holds; Error(kIo) when it cannot be read.
  explicit TorchFile(const std::filesystem::path& path);
  /// The same of the bytes of a file.
  TorchFile(std::string bytes, std::string_view where);
  TorchFile(TorchFile&&) = default;
  TorchFile& operator=(TorchFile&&) = default;

  const std::vector<TensorView>& tensors() const { return tensors_; }  ///< contiguous

 private:
  using Storages = std::map<std::string, std::string_view, std::less<>>;  ///< key -> bytes

  void read_bytes(std::string_view where);
  void read_archive(std::string_view where);
  void read_folder(const std::filesystem::path& folder);
  void read_old_format(std::string_view where);
  void read_dict(const PickledDict& dict, const Storages& storages, std::string_view where);

  std::string bytes_;
  std::map<std::string, std::string> members_;  ///< of an archive or a folder
  std::deque<std::string> copies_;              ///< of tensors that lie with gaps
  std::vector<TensorView> tensors_;
};

}  // namespace stretto::store
