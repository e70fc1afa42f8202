#include "data/images/image_inputs.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <set>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "data/archives/unpacked_file.h"
#include "data/images/archive_images.h"
#include "data/images/pixel_files.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFormatsAdvice =
    "data.format takes folders of classes, tar and tar.gz files, WebDataset shards, idx files, the "
    "binary version of CIFAR, and manifests that end in .csv, .tsv or .jsonl";
constexpr std::string_view kIdxImageBytes("\0\0\x08\x03", 4), kIdxLabelBytes("\0\0\x08\x01", 4);
constexpr size_t kTarBlock = 512, kTarMark = 257;
constexpr size_t kCifar10Record = 3073, kCifar100Record = 3074;

[[noreturn]] void refuse_input(const std::string& path, const std::string& what,
                               const std::string& advice = kFormatsAdvice) {
  throw Error(ExitCode::kUsage, printable(path, 4096) + ": " + what, advice);
}

/// What stands first in a file, unpacked.
struct FirstBytes {
  std::string bytes;
  bool is_packed = false;
};
FirstBytes first_bytes_of(const std::string& path) {
  auto file = open_unpacked(path);
  FirstBytes first{.bytes = std::string(kTarBlock, '\0'), .is_packed = file.is_packed};
  size_t done = 0;
  while (done < first.bytes.size()) {
    const size_t got = file.bytes->read(first.bytes.data() + done, first.bytes.size() - done);
    if (got == 0) break;
    done += got;
  }
  first.bytes.resize(done);
  return first;
}

bool has_extension(const std::string& path, std::span<const std::string_view> extensions) {
  fs::path name = fs::path(path).filename();
  if (name.extension() == ".gz" || name.extension() == ".zst") name = name.stem();
  return std::find(extensions.begin(), extensions.end(), name.extension().native()) !=
         extensions.end();
}

bool is_manifest_name(const std::string& path) {
  constexpr std::array<std::string_view, 4> kManifests{".csv", ".tsv", ".jsonl", ".json"};
  return has_extension(path, kManifests);
}

bool is_archive_name(const std::string& path) {
  constexpr std::array<std::string_view, 2> kArchives{".tar", ".tgz"};
  return has_extension(path, kArchives);
}

/// The names in a folder that do not begin with a dot, sorted.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (!name.starts_with('.')) names.push_back(std::move(name));
  }
  if (error) throw_io_error("cannot read", folder, error.value());
  std::sort(names.begin(), names.end());
  return names;
}

bool has_name(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The paths of one key, one after the other.
class Resolving {
 public:
  Resolving(const ImageDataOptions& options, const std::string& key,
            const std::vector<std::string>& paths)
      : options_(options), key_(key), paths_(paths) {}

  std::vector<ImageInput> resolve() {
    for (at_ = 0; at_ < paths_.size(); ++at_) {
      const std::string& path = paths_[at_];
      std::error_code ignored;
      const auto status = fs::status(path, ignored);
      if (!fs::exists(status)) {
        refuse_input(path, "no such file or folder",
                     "paths in a config are relative to the config file; look for a slip in the "
                     "name");
      }
      if (fs::is_directory(status)) {
        add_folder(path);
      } else {
        add_file(path);
      }
    }
    require_once();
    return std::move(inputs_);
  }

 private:
  bool may_be(std::string_view format) const {
    return options_.format == "auto" || options_.format == format;
  }

  void add_folder(const std::string& path) {
    if (options_.format == "folder") return add(ImageFormat::kFolder, path);
    const auto names = names_in(path);
    if (may_be("cifar10") &&
        (has_name(names, "data_batch_1.bin") || has_name(names, "test_batch.bin"))) {
      return add_cifar_folder(path, names, ImageFormat::kCifar10);
    }
    if (may_be("cifar100") && (has_name(names, "train.bin") || has_name(names, "test.bin"))) {
      return add_cifar_folder(path, names, ImageFormat::kCifar100);
    }
    if ((may_be("tar") || may_be("webdataset")) && is_folder_of_archives(path, names)) {
      for (const auto& name : names) add_file((fs::path(path) / name).string());
      return;
    }
    if (options_.format == "auto") return add(ImageFormat::kFolder, path);
    refuse_input(path, "is a folder, and data.format = \"" + options_.format + "\"",
                 options_.format == "cifar10" || options_.format == "cifar100"
                     ? "the binary version of CIFAR has files such as data_batch_1.bin, train.bin"
                     : "name the files");
  }

  static bool is_folder_of_archives(const std::string& path,
                                    const std::vector<std::string>& names) {
    std::error_code ignored;
    return !names.empty() && std::all_of(names.begin(), names.end(), [&](const auto& name) {
      return is_archive_name(name) && fs::is_regular_file(fs::path(path) / name, ignored);
    });
  }

  void add_cifar_folder(const std::string& path, const std::vector<std::string>& names,
                        ImageFormat format) {
    const bool is_train = key_ == "data.train";
    const bool is_ten = format == ImageFormat::kCifar10;
    const size_t before = inputs_.size();
    for (const auto& name : names) {
      const bool is_of_training = is_ten ? name.starts_with("data_batch_") : name == "train.bin";
      const bool is_of_test = name == (is_ten ? "test_batch.bin" : "test.bin");
      if (!name.ends_with(".bin") || !(is_train ? is_of_training : is_of_test)) continue;
      add_cifar(format, (fs::path(path) / name).string());
    }
    if (inputs_.size() > before) return;
    refuse_input(path, is_train ? "has no training files of CIFAR" : "has no test file of CIFAR",
                 "name the .bin files themselves");
  }

  void add_file(const std::string& path) {
    if (options_.format == "folder") {
      refuse_input(path, "is a file, and data.format = \"folder\"", "name the folder of classes");
    }
    if (options_.format == "manifest") return add(ImageFormat::kManifest, path);
    if (options_.format == "tar") return add(ImageFormat::kTar, path);
    if (options_.format == "webdataset") return add(ImageFormat::kWebDataset, path);
    if (options_.format == "idx") return add_idx(path, first_bytes_of(path).bytes);
    if (options_.format == "cifar10") return add_cifar(ImageFormat::kCifar10, path);
    if (options_.format == "cifar100") return add_cifar(ImageFormat::kCifar100, path);
    add_by_content(path);
  }

  void add_by_content(const std::string& path) {
    const FirstBytes first = first_bytes_of(path);
    const std::string_view bytes = first.bytes;
    if (bytes.empty()) refuse_input(path, "is empty");
    if (bytes.starts_with(kIdxImageBytes) || bytes.starts_with(kIdxLabelBytes)) {
      return add_idx(path, bytes);
    }
    const bool has_mark = bytes.size() == kTarBlock && bytes.substr(kTarMark, 5) == "ustar";
    if (has_mark || is_archive_name(path)) {
      TarReader archive(open_unpacked(path).bytes, path);
      const bool is_shard = kind_of_archive(archive) == ArchiveKind::kShard;
      return add(is_shard ? ImageFormat::kWebDataset : ImageFormat::kTar, path);
    }
    if (is_manifest_name(path)) return add(ImageFormat::kManifest, path);
    if (const auto cifar = first.is_packed ? std::nullopt : cifar_by_size(path, bytes)) {
      return add_cifar(*cifar, path);
    }
    refuse_input(path, "its content is of no format for pictures and their classes");
  }

  /// Whole records, of which the first has labels that there are.
  static std::optional<ImageFormat> cifar_by_size(const std::string& path, std::string_view bytes) {
    std::error_code failed;
    const auto size = fs::file_size(path, failed);
    if (failed || bytes.size() < 2) return std::nullopt;
    const auto label = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
    if (size % kCifar10Record == 0 && label(0) < 10) return ImageFormat::kCifar10;
    if (size % kCifar100Record == 0 && label(0) < 20 && label(1) < 100) {
      return ImageFormat::kCifar100;
    }
    return std::nullopt;
  }

  void add_cifar(ImageFormat format, const std::string& path) {
    const fs::path names =
        fs::path(path).parent_path() /
        (format == ImageFormat::kCifar10 ? "batches.meta.txt" : "fine_label_names.txt");
    std::error_code ignored;
    add(format, path, fs::is_regular_file(names, ignored) ? names.string() : "");
  }

  /// Pictures with their labels; moves on where these are the next path.
  void add_idx(const std::string& path, std::string_view first) {
    if (first.starts_with(kIdxLabelBytes)) {
      refuse_input(path, "is an idx file of labels, and stands behind no file of pictures",
                   "name the file of pictures, such as train-images-idx3-ubyte; its labels are "
                   "found beside it, or are the next path");
    }
    if (at_ + 1 < paths_.size() && is_labels(paths_[at_ + 1])) {
      return add(ImageFormat::kIdx, path, paths_[++at_]);
    }
    const std::string labels = labels_beside(path);
    if (labels.empty()) {
      const bool has_next = at_ + 1 < paths_.size();
      refuse_input(
          path,
          "there is no file of labels for this idx file" +
              (has_next ? ": " + paths_[at_ + 1] +
                              ", the path behind it, does not begin with the bytes 0 0 8 1 "
                              "of labels"
                        : std::string()),
          "put it beside, such as train-labels-idx1-ubyte for train-images-idx3-ubyte, or "
          "name it behind the file of pictures");
    }
    add(ImageFormat::kIdx, path, labels);
  }

  static bool is_labels(const std::string& path) {
    std::error_code ignored;
    if (!fs::is_regular_file(path, ignored)) return false;
    return std::string_view(first_bytes_of(path).bytes).starts_with(kIdxLabelBytes);
  }

  static std::string labels_beside(const std::string& path) {
    std::string name = fs::path(path).filename().string();
    for (const auto& [from, to] : {std::pair("images", "labels"), std::pair("idx3", "idx1")}) {
      const size_t place = name.find(from);
      if (place != std::string::npos) name.replace(place, std::string_view(from).size(), to);
    }
    const std::string plain = name.ends_with(".gz") ? name.substr(0, name.size() - 3) : name;
    for (const auto& one : {name, plain, plain + ".gz"}) {
      const fs::path labels = fs::path(path).parent_path() / one;
      if (labels != path && is_labels(labels.string())) return labels.string();
    }
    return "";
  }

  void add(ImageFormat format, const std::string& path, const std::string& beside = "") {
    inputs_.push_back({.format = format, .path = path, .beside = beside});
  }

  void require_once() const {
    std::set<std::string> known;
    std::error_code ignored;
    for (const auto& input : inputs_) {
      const fs::path real = fs::weakly_canonical(input.path, ignored);
      if (known.insert(real.empty() ? input.path : real.string()).second) continue;
      refuse_input(input.path, "is named twice in " + key_, "name each path once");
    }
  }

  const ImageDataOptions& options_;
  const std::string& key_;
  const std::vector<std::string>& paths_;
  size_t at_ = 0;
  std::vector<ImageInput> inputs_;
};

}  // namespace

std::vector<ImageInput> image_inputs(const ImageDataOptions& options, const std::string& key,
                                     const std::vector<std::string>& paths) {
  return Resolving(options, key, paths).resolve();
}

}  // namespace stretto::data
