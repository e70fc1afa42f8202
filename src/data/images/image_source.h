#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/bad_samples.h"
#include "image/image.h"
#include "image/image_file.h"

namespace stretto::data {

/// What is known of a picture before it is decoded.
struct ImageFacts {
  uint64_t bytes = 0;             ///< as it is stored
  uint64_t hash = 0;              ///< XXH3-64 of these bytes
  int64_t height = 0, width = 0;  ///< by its header
};

/// Where classes are folders: which of them the source has.
struct ClassFolders {
  /// Sources with the same root are parts of one folder: leading folders that all of their pictures
  /// share are no classes.
  std::string root;
  std::vector<std::string> folders;  ///< that are known, also those without pictures
};

/// The pictures of one path of `[data]`, each with its class. Safe to use from several threads.
class ImageSource {
 public:
  virtual ~ImageSource() = default;

  virtual int64_t size() const = 0;
  /// The name of its class; with folders() the folder it lies in, "train/cat".
  virtual std::string label(int64_t sample) const = 0;
  /// Null where labels are names of classes.
  virtual const ClassFolders* folders() const { return nullptr; }
  virtual ImageFacts facts(int64_t sample) const = 0;
  /// Where it comes from, for messages and reports: the path of a file, "list.tsv:17",
  /// "a.tar: cat/1.jpg", "train-images-idx3-ubyte: picture 17" (from 0).
  virtual std::string place(int64_t sample) const = 0;
  /// Whether its pixels are stored as they are (idx, CIFAR): it has no encoded form.
  virtual bool is_raw() const { return false; }

  /// The bytes of the file that the picture is. Throws a SampleError where it has vanished or
  /// changed since the source was opened; std::logic_error for one that is raw.
  virtual std::string read(int64_t sample) const = 0;
  /// Its pixels. Throws as read() and image::decode_image() do.
  virtual image::Image load(int64_t sample, const image::DecodeOptions& options) const {
    return image::decode_image(read(sample), place(sample), options);
  }

  /// Samples that were bad when it was opened.
  virtual const LeftOut& left_out() const = 0;
  /// Why the cache could not be written, where the system is to blame; else empty.
  virtual std::string refusal() const { return ""; }
};

}  // namespace stretto::data
