#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/images/image_data_options.h"

namespace stretto::data {

enum class ImageFormat : uint8_t {
  kFolder,
  kTar,
  kWebDataset,
  kIdx,
  kCifar10,
  kCifar100,
  kManifest
};

/// A path of `[data]` as it is read.
struct ImageInput {
  ImageFormat format = ImageFormat::kFolder;
  std::string path;
  /// Files that belong to it: of idx the labels, of CIFAR the names of classes, if there are any.
  std::string beside = {};
};

/// How the paths of a key are read. `data.format` decides, and with "auto" the content: the first
/// bytes of a file, unpacked, and what lies in a folder.
///
/// - A folder whose files are tar archives, and which has no folders, stands for these archives in
///   the order of their names.
/// - A folder with data_batch_1.bin … or train.bin is that of CIFAR: `data.train` reads its
/// training
///   files, other keys its test files.
/// - The labels of an idx file are the next path of the list, or the file beside it with `labels`
///   in the place of `images` and `idx1` of `idx3`, packed or not.
///
/// Throws Error(kUsage) for a path that is not there, is named twice, cannot be told or does not
/// fit `data.format`; Error(kBadData) for a damaged archive.
std::vector<ImageInput> image_inputs(const ImageDataOptions& options, const std::string& key,
                                     const std::vector<std::string>& paths);

}  // namespace stretto::data
