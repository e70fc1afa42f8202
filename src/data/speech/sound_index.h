#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/archives/tar_reader.h"
#include "data/bad_samples.h"

namespace stretto::data {

/// A file of sound, by its header.
struct SoundFile {
  std::string path;     ///< where it is; of an archive its name there
  uint64_t stamp = 0;   ///< stamp_hash() of a file of its own
  uint64_t offset = 0;  ///< of an archive: where its bytes are
  uint64_t bytes = 0, hash = 0;
  int64_t rate = 0, channels = 0, frames = 0;
  std::string fault = {}, advice = {};  ///< why it cannot be read: "is empty"; else empty
};

/// Sounds by the names that rows have for them.
class SoundIndex {
 public:
  void add(const std::string& name, SoundFile sound);
  /// -1 where there is none.
  int64_t find(const std::string& name) const;
  const SoundFile& at(int64_t number) const { return sounds_[static_cast<size_t>(number)]; }
  const std::vector<SoundFile>& sounds() const { return sounds_; }

  /// Reads the headers of files that are no members of an archive, several at once.
  void look(int64_t threads);

 private:
  std::vector<SoundFile> sounds_;
  std::unordered_map<std::string, int64_t> places_;
};

/// What is in an archive.
struct SoundArchive {
  SoundIndex sounds;
  std::map<std::string, std::string> texts;  ///< the bytes of .txt, .csv and .lab files, by name
  std::vector<std::string> names;            ///< of all files, sorted
  int64_t hidden = 0;  ///< members that were left out since their names begin with a dot
};

/// Reads an archive from its first member to its last.
///
/// A bad sample is a member that is a link, a device or sparse, whose name is absolute or leads out
/// of the archive, or that comes twice.
/// @param name  of the archive, for messages
/// @param keep  stores the bytes of a sound -> where; empty: they stay in the archive
/// Throws as TarReader and BadSamples do, and Error(kBadData) for texts of more than 1 GB.
SoundArchive read_sound_archive(TarReader& archive, const std::string& name,
                                const std::function<uint64_t(std::string_view bytes)>& keep,
                                BadSamples& bad);

}  // namespace stretto::data
