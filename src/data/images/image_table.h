#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/bad_samples.h"
#include "data/data_file.h"
#include "data/images/image_data_options.h"
#include "data/images/image_source.h"
#include "data/loading.h"

namespace stretto::data {

/// Labelled pictures of the paths of one key, one path after the other. A picture has a number,
/// from 0, which depends on the content of the paths alone. Safe to use from several threads.
class ImageTable {
 public:
  ImageTable(std::vector<std::shared_ptr<const ImageSource>> sources, const BadSampleRule& rule);

  int64_t size() const { return begins_.back(); }
  std::string_view class_name(int64_t sample) const;
  ImageFacts facts(int64_t sample) const;
  std::string place(int64_t sample) const;
  bool is_raw(int64_t sample) const;
  /// As ImageSource has them.
  std::string read(int64_t sample) const;
  image::Image load(int64_t sample, const image::DecodeOptions& options = {}) const;

  /// A hash of all pictures and classes in their order: the same for equal data, wherever it lies.
  uint64_t hash() const;
  const LeftOut& left_out() const { return left_out_; }
  /// Why the cache could not be written; empty where it was.
  std::string refusal() const;

 private:
  struct Found {
    const ImageSource& source;
    int64_t sample;
  };
  Found find(int64_t sample) const;

  std::vector<std::shared_ptr<const ImageSource>> sources_;
  std::vector<int64_t> begins_;  ///< [sources + 1]
  LeftOut left_out_;
};

/// Opens the pictures of a key. Headers and hashes of files are looked at once and kept in the
/// cache (data/media/media_table.h, data/images/archive_images.h); nothing is decoded.
///
/// Pictures whose bytes are equal are told of in the log: one in two classes is a warning.
///
/// @param key    "data.train", for messages
/// @param paths  of that key; `eval` may have others than the options
/// Throws Error(kUsage) for a path that is not there, is of another format than `data.format`, or
/// is named twice; Error(kBadData) for pictures that cannot be read, as `data.bad_samples` says,
/// and for a path without any picture.
std::shared_ptr<const ImageTable> open_images(const ImageDataOptions& options,
                                              const std::string& key,
                                              const std::vector<std::string>& paths);

/// The paths of `[data]` with the kinds by which data.json has them: a folder with all its files, a
/// manifest with the files that it names, an archive and a file of pixels as bytes. Files of labels
/// that an idx file implies are added. What cannot be told, as for a path that is not there, stays
/// as it is.
/// @param files  of the path keys (experiment/data_files.h)
std::vector<DataFile> image_data_files(const ImageDataOptions& options,
                                       std::vector<DataFile> files);

/// How many pictures and classes some paths have, by names of files and headers alone; nothing for
/// what would have to be read for it, such as an archive.
struct ImageCount {
  int64_t pictures = 0;
  int64_t classes = 0;
};
std::optional<ImageCount> count_images(const ImageDataOptions& options,
                                       const std::vector<std::string>& paths);

/// How far ahead micro-batches are made, and on how many threads.
/// @param cores  of this process
Loading image_loading(const ImageDataOptions& options, int64_t cores);

}  // namespace stretto::data
