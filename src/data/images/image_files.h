#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/data_file.h"
#include "data/images/image_data_options.h"
#include "data/loading.h"
#include "data/media/media_rows.h"

namespace stretto::data {

/// The paths of `[data]` with the kinds by which data.json has them: a folder with all its files, a
/// manifest with the files that it names, an archive and a file of pixels as bytes. Files beside
/// that belong to one, such as the labels of an idx file, are added behind it. A path that cannot
/// be told, as one that is not there, stays as it is.
/// @param files  of the path keys (experiment/data_files.h)
std::vector<DataFile> image_data_files(const ImageDataOptions& options,
                                       const std::vector<DataFile>& files);

/// How many pictures and classes some paths have, by names of files, headers and sizes alone;
/// nothing where they would have to be read for it, such as archives. Bad samples count.
struct ImageCount {
  int64_t pictures = 0;
  int64_t classes = 0;
};
/// @param key  whose paths these are, as image_inputs() takes it (data/images/image_inputs.h)
/// Throws as that does.
std::optional<ImageCount> count_images(const ImageDataOptions& options,
                                       const std::vector<std::string>& paths,
                                       const std::string& key = "data.train");

/// The columns of a manifest of pictures: `data.path` and `data.label`.
MediaColumns manifest_columns(const ImageDataOptions& options);

/// How far ahead micro-batches are made, and on how many threads.
/// @param cores  of this process
Loading image_loading(const ImageDataOptions& options, int64_t cores);

}  // namespace stretto::data
