#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "data/bad_samples.h"
#include "data/data_file.h"
#include "data/media/known_file.h"
#include "data/media/media_rows.h"
#include "data/sample_store.h"

namespace stretto::data {

enum class MediaKind : uint8_t { kSound, kPicture };

/// Files of sounds or of pictures.
struct MediaInput {
  MediaKind kind = MediaKind::kPicture;
  /// Folders (kTree), each of whose folders is a class, and manifests (media_manifest()).
  std::vector<DataFile> sources;
  MediaColumns columns = {};  ///< of manifests
  BadSampleRule bad_samples = {};
};

/// Where stores of them are kept.
struct MediaCache {
  std::string dir = {};  ///< data.cache_dir; empty = the user's cache folder
  int64_t threads = 1;   ///< that look at files
  bool is_used = true;   ///< false: nothing is taken from it, and nothing is written
};

/// What is known of a sample without decoding it. Sizes are those of the header.
struct MediaFacts {
  uint64_t bytes = 0;              ///< of the file
  uint64_t hash = 0;               ///< XXH3-64 of the file
  int64_t height = 0, width = 0;   ///< of a picture
  int64_t rate = 0, channels = 0;  ///< of a sound
  int64_t begin = 0, end = 0;      ///< frames of the sound that are the sample, at its rate

  double seconds() const {
    return rate == 0 ? 0 : static_cast<double>(end - begin) / static_cast<double>(rate);
  }
};

/// The samples of some files. The files stay where they are, and are decoded when a sample is
/// loaded. Safe to use from several threads.
class MediaTable {
 public:
  int64_t size() const;
  std::string path(int64_t sample) const;
  /// The text of the row, or the name of the class.
  std::string_view text(int64_t sample) const;
  const MediaFacts& facts(int64_t sample) const;
  /// Where the sample comes from, for messages: "list.tsv:17", or the path of a file in a folder.
  std::string place(int64_t sample) const;

  /// Opens the file of a sample, which has to be the one that the table was made of.
  /// Throws a SampleError where it has vanished, or holds something else now: a file that was
  /// touched or replaced is read once more for that. Throws Error(kIo).
  Descriptor open(int64_t sample) const;
  /// Its bytes. Throws as open().
  std::string read(int64_t sample) const;

  const LeftOut& left_out() const { return left_out_; }
  bool from_cache() const { return store_.from_cache(); }
  /// Why it could not be kept, where the system is to blame.
  const std::string& refusal() const { return refusal_; }

 private:
  friend class MediaTableBuild;
  KnownFile known(int64_t sample) const;
  SampleStore store_;
  std::vector<DataFile> sources_;
  LeftOut left_out_;
  std::string refusal_;
};

/// Finds the table of some files in the cache, or looks at all of them, by their headers, and keeps
/// it there. The key has names, sizes and times of the files, what manifests hold, and how they are
/// read. Content is hashed as data.json needs it (data/listed_files.h), once.
///
/// A file in a folder lies in the folder of its class; the folders below that do not count. What
/// begins with a dot is left out. A row or a file that cannot be read is a bad sample.
///
/// Throws as read_media_rows(), ListedFiles and BadSamples do, and Error(kBadData) for a file that
/// changes meanwhile.
std::shared_ptr<const MediaTable> open_media(const MediaInput& input, const MediaCache& cache);

/// Samples that could not be loaded although they were good when training began. Safe to use from
/// several threads.
class MediaFaults {
 public:
  /// @param before  left out already, which count for the bound
  explicit MediaFaults(BadSampleRule rule, LeftOut before = {})
      : rule_(rule), left_out_(std::move(before)) {}

  /// Calls `load`. A SampleError of it, or an Error(kBadData), is thrown on with "stop", and makes
  /// the sample one that is left out with "skip": counted once, however often it is asked for, and
  /// named in a warning if it is among the first ten. Throws as require_within() does.
  /// @return whether the sample is there
  template <class Load>
  bool take(int64_t sample, const std::string& path, const Load& load) {
    try {
      load();
      return true;
    } catch (const Error& error) {
      if (error.code() != ExitCode::kBadData || !rule_.skips) throw;
      leave_out(sample, SampleError::of(error, path));
      return false;
    }
  }
  LeftOut left_out() const;

 private:
  void leave_out(int64_t sample, const SampleError& error);

  BadSampleRule rule_;
  mutable std::mutex mutex_;
  LeftOut left_out_;
  std::set<int64_t> samples_;
};

}  // namespace stretto::data
