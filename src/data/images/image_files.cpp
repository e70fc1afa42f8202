#include "data/images/image_files.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "data/archives/member_names.h"
#include "data/archives/unpacked_file.h"
#include "data/class_folders.h"
#include "data/images/image_inputs.h"
#include "data/images/pixel_files.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;

/// Counts the pictures of inputs whose number can be told without reading them.
class Counting {
 public:
  explicit Counting(const ImageDataOptions& options) : options_(options) {}

  /// @return false where it cannot be told
  bool add(const ImageInput& input) {
    switch (input.format) {
      case ImageFormat::kFolder:
        add_folder(input.path);
        return true;
      case ImageFormat::kManifest:
        add_manifest(input.path);
        return true;
      case ImageFormat::kIdx:
        add_idx(input.beside);
        return true;
      case ImageFormat::kCifar10:
        return add_cifar(input.path, /*record=*/3073, /*classes=*/10);
      case ImageFormat::kCifar100:
        return add_cifar(input.path, /*record=*/3074, /*classes=*/100);
      case ImageFormat::kTar:
      case ImageFormat::kWebDataset:
        return false;
    }
    return false;
  }

  ImageCount count() const {
    return {.pictures = pictures_, .classes = static_cast<int64_t>(classes_.size())};
  }

 private:
  void add_folder(const std::string& path) {
    std::set<std::string> holding, all;
    std::error_code error;
    const size_t prefix = (fs::path(path) / "").native().size();
    fs::recursive_directory_iterator entry(path, error);
    for (const fs::recursive_directory_iterator end; !error && entry != end;
         entry.increment(error)) {
      const std::string name = entry->path().string().substr(prefix);
      if (is_hidden_path(name)) {
        entry.disable_recursion_pending();
      } else if (entry->is_directory(error)) {
        all.insert(name);
      } else if (const auto folder = folder_of_path(name); !folder.empty()) {
        ++pictures_;
        holding.emplace(folder);
      }
    }
    const size_t shared = shared_folders(holding, all);
    for (const auto& folder : holding) classes_.emplace(folder_at(folder, shared));
  }

  void add_manifest(const std::string& path) {
    BadSamples bad({.skips = true, .most = INT64_MAX});
    read_media_rows(path, manifest_columns(options_), bad, [&](const MediaRow& row) {
      ++pictures_;
      classes_.insert(row.text);
    });
  }

  void add_idx(const std::string& labels) {
    for (const int label : read_idx_labels(*open_unpacked(labels).bytes, labels)) {
      ++pictures_;
      classes_.insert(std::to_string(label));
    }
  }

  bool add_cifar(const std::string& path, uintmax_t record, int classes) {
    if (open_unpacked(path).is_packed) return false;
    std::error_code failed;
    const auto size = fs::file_size(path, failed);
    if (failed) return false;
    pictures_ += static_cast<int64_t>(size / record);
    for (int i = 0; i < classes; ++i) classes_.insert(std::to_string(i));
    return true;
  }

  const ImageDataOptions& options_;
  int64_t pictures_ = 0;
  std::set<std::string> classes_;
};

/// The paths of one key with their kinds.
std::vector<DataFile> files_of_key(const ImageDataOptions& options, const std::string& key,
                                   std::vector<DataFile> files) {
  std::vector<std::string> paths;
  for (const auto& file : files) paths.push_back(file.path);
  std::map<std::string, ImageInput> inputs;
  try {
    for (auto& input : image_inputs(options, key, paths)) {
      inputs.emplace(input.path, std::move(input));
    }
  } catch (const Error&) {
    // What is wrong with a path is said where it is read.
  }
  std::vector<DataFile> result;
  std::error_code ignored;
  const std::set<std::string> given(paths.begin(), paths.end());
  std::set<std::string> added;
  for (auto& file : files) {
    const auto found = inputs.find(file.path);
    if (fs::is_directory(file.path, ignored)) {
      file.kind = DataKind::kTree;
    } else if (found == inputs.end()) {
      if (!inputs.empty()) file.kind = DataKind::kBytes;  // labels, which an input names
    } else if (found->second.format == ImageFormat::kManifest) {
      file = media_manifest(key, file.path, manifest_columns(options), bad_sample_rule(options));
    } else {
      file.kind = DataKind::kBytes;
    }
    result.push_back(std::move(file));
    if (found == inputs.end()) continue;
    const std::string& beside = found->second.beside;
    if (beside.empty() || given.contains(beside) || !added.insert(beside).second) continue;
    result.push_back({.key = key, .path = beside, .kind = DataKind::kBytes});
  }
  return result;
}

}  // namespace

std::vector<DataFile> image_data_files(const ImageDataOptions& options,
                                       const std::vector<DataFile>& files) {
  std::vector<DataFile> result;
  for (size_t begin = 0, end = 0; begin < files.size(); begin = end) {
    while (end < files.size() && files[end].key == files[begin].key) ++end;
    const auto at = [&](size_t i) { return files.begin() + static_cast<std::ptrdiff_t>(i); };
    for (auto& file :
         files_of_key(options, files[begin].key, std::vector<DataFile>(at(begin), at(end)))) {
      result.push_back(std::move(file));
    }
  }
  return result;
}

std::optional<ImageCount> count_images(const ImageDataOptions& options,
                                       const std::vector<std::string>& paths,
                                       const std::string& key) {
  Counting counting(options);
  for (const auto& input : image_inputs(options, key, paths)) {
    if (!counting.add(input)) return std::nullopt;
  }
  return counting.count();
}

MediaColumns manifest_columns(const ImageDataOptions& options) {
  return {.path = options.path, .text = options.label};
}

Loading image_loading(const ImageDataOptions& options, int64_t cores) {
  return {.depth = options.prefetch,
          .threads = options.threads > 0 ? options.threads : std::max<int64_t>(1, cores)};
}

}  // namespace stretto::data
