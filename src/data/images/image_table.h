#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/bad_samples.h"
#include "data/cache_use.h"  // part of this interface
#include "data/images/image_data_options.h"
#include "data/images/image_files.h"  // part of this interface
#include "data/images/image_source.h"

namespace stretto::data {

/// Labelled pictures of the paths of one key, one path after the other. A picture has a number,
/// from 0, which depends on the content of the paths alone. Safe to use from several threads.
///
/// Where classes are folders, the leading folders that all pictures share are no classes: "train"
/// of train/cat/1.jpg and train/dog/2.jpg. Folders below that of the class do not count.
class ImageTable {
 public:
  /// @param key  "data.train", for messages
  /// Throws Error(kUsage) where the classes are the sets of a data set, "train" and "test", and
  /// Error(kBadData) for more bad samples than the rule allows.
  ImageTable(std::vector<std::shared_ptr<const ImageSource>> sources, const std::string& key,
             const BadSampleRule& rule);

  int64_t size() const { return begins_.back(); }
  const std::string& class_name(int64_t sample) const {
    return class_names_[static_cast<size_t>(classes_[static_cast<size_t>(sample)])];
  }
  ImageFacts facts(int64_t sample) const;
  std::string place(int64_t sample) const;
  bool is_raw(int64_t sample) const;
  /// As ImageSource has them.
  std::string read(int64_t sample) const;
  image::Image load(int64_t sample, const image::DecodeOptions& options = {}) const;

  /// The names of the classes that pictures have, in the order of their bytes; and the place of
  /// each picture's class among them.
  const std::vector<std::string>& class_names() const { return class_names_; }
  const std::vector<int32_t>& classes() const { return classes_; }
  /// The names of folders of classes that have no picture.
  const std::vector<std::string>& empty_classes() const { return empty_classes_; }

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
  std::vector<int64_t> begins_{0};  ///< [sources + 1]
  std::vector<std::string> class_names_, empty_classes_;
  std::vector<int32_t> classes_;  ///< [samples]
  LeftOut left_out_;
};

/// Pictures whose bytes are equal.
struct EqualImages {
  int64_t copies = 0;  ///< that another picture precedes
  int64_t contradictions = 0;
  /// The first two that have different classes.
  int64_t first = 0, second = 0;
};
EqualImages equal_images(const ImageTable& table);

/// Pictures of another set whose bytes are those of one for training.
struct SharedImages {
  int64_t count = 0;
  int64_t first = 0, first_in_training = 0;  ///< where there are any
};
SharedImages shared_images(const ImageTable& training, const ImageTable& other);
/// The same in words for a key of the other set; empty where there are none.
std::string shared_images_text(const ImageTable& training, const ImageTable& other);
inline constexpr const char* kSharedImagesAdvice =
    "scores on them say nothing of other pictures: take them out of one of the sets";

/// Opens the pictures of a key. Headers and hashes of files are looked at once and kept in the
/// cache (data/media/media_table.h, data/images/archive_images.h); nothing is decoded. Pictures
/// whose bytes are equal are told of in the log: with two classes in a warning. `data.threads` look
/// at them, or one on each core.
///
/// @param key    "data.train", for messages and for folders of CIFAR
/// @param paths  of that key; `eval` may have others than the options
/// Throws as image_inputs() and ImageTable do, and Error(kBadData) for pictures that cannot be
/// read, as `data.bad_samples` says, and where there is no picture at all.
std::shared_ptr<const ImageTable> open_images(const ImageDataOptions& options,
                                              const std::string& key,
                                              const std::vector<std::string>& paths,
                                              CacheUse use = CacheUse::kKeeps);

}  // namespace stretto::data
