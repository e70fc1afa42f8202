#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/bad_samples.h"
#include "data/data_file.h"
#include "data/images/image_source.h"
#include "data/media/media_rows.h"

namespace stretto::data {

struct MediaImagesInput {
  DataFile source;            ///< a folder (kTree) or a manifest (media_manifest())
  MediaColumns columns = {};  ///< of a manifest: `text` is the name of the class
  BadSampleRule bad_samples = {};
  std::string cache_dir = {};
  int64_t threads = 1;
  bool uses_cache = true;
};

/// Pictures that are files of a folder of classes, or that a manifest names
/// (data/media/media_table.h). A row without a class is a bad sample. Throws as open_media().
std::shared_ptr<const ImageSource> open_media_images(const MediaImagesInput& input);

/// The folders below a folder, "train/cat", but for those whose names begin with a dot: sorted.
/// Throws Error(kIo) for one that cannot be read.
std::vector<std::string> folders_below(const std::string& folder);

}  // namespace stretto::data
