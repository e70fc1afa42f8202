#include "data/input_files.h"

#include <algorithm>

#include "base/error.h"
#include "data/byte_stream.h"

namespace stretto::data {

InputFiles::InputFiles(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    const std::filesystem::path file = parse_input_path(path).file;
    if (std::find(files_.begin(), files_.end(), file) == files_.end()) files_.push_back(file);
  }
  for (const std::filesystem::path& file : files_) stamps_.push_back(file_stamp(file));
}

void InputFiles::hash(const std::filesystem::path& memory_dir, int64_t threads) {
  hashes_ = content_hashes(files_, memory_dir, threads);
}

uint64_t InputFiles::hash_of(const std::string& path) const {
  const auto found = std::find(files_.begin(), files_.end(), parse_input_path(path).file);
  return hashes_[static_cast<size_t>(found - files_.begin())];
}

void InputFiles::check_unchanged() const {
  for (size_t i = 0; i < files_.size(); ++i) {
    if (file_stamp(files_[i]) == stamps_[i]) continue;
    throw Error(ExitCode::kBadData, files_[i].string() + ": changed while it was being read",
                "start again when nothing writes to it any more");
  }
}

}  // namespace stretto::data
