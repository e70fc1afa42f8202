#include "data/input_files.h"

#include <algorithm>

#include "base/error.h"
#include "data/byte_stream.h"

namespace stretto::data {

InputFiles::InputFiles(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    const std::filesystem::path file = parse_input_path(path).file;
    if (std::find(files_.begin(), files_.end(), file) != files_.end()) continue;
    paths_.push_back(path);
    files_.push_back(file);
  }
  for (const std::filesystem::path& file : files_) stamps_.push_back(file_stamp(file));
}

void InputFiles::hash(const std::filesystem::path& memory_dir, int64_t threads) {
  hashes_ = content_hashes(files_, memory_dir, threads);
}

void InputFiles::hash(const std::function<uint64_t(const std::string& path)>& stored_hash) {
  hashes_.clear();
  for (const auto& path : paths_) hashes_.push_back(stored_hash(path));
}

uint64_t InputFiles::hash_of(const std::string& path) const {
  const auto found = std::find(files_.begin(), files_.end(), parse_input_path(path).file);
  return hashes_[static_cast<size_t>(found - files_.begin())];
}

// Its status changed, as by a link or by other rights, and its content is what was hashed.
bool InputFiles::was_merely_linked(size_t file) const {
  FileStamp now = file_stamp(files_[file]);
  now.ctime_ns = stamps_[file].ctime_ns;
  if (now != stamps_[file] || hashes_.empty()) return false;
  return content_hashes({files_[file]}, {}, 1).front() == hashes_[file];
}

void InputFiles::check_unchanged() const {
  for (size_t i = 0; i < files_.size(); ++i) {
    if (file_stamp(files_[i]) == stamps_[i]) continue;
    if (was_merely_linked(i)) continue;
    throw Error(ExitCode::kBadData, files_[i].string() + ": changed while it was being read",
                "start again when nothing writes to it any more");
  }
}

}  // namespace stretto::data
