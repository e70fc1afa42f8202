#pragma once

#include <filesystem>
#include <optional>

#include "base/file.h"

namespace stretto::interchange {

/// Throws Error(kUsage) when something is at `place` that is not an empty folder: for commands that
/// compute before they write.
void require_free_place(const std::filesystem::path& place);

/// A folder that appears at its place only when it is whole. Until then it is `.tmp-NAME` beside
/// it, which is removed when this object goes, and by the next one of the same place. The file
/// `.tmp-NAME.lock` is held meanwhile.
class NewFolder {
 public:
  /// Throws Error(kUsage) when something is at `place` that is not an empty folder, or another
  /// process is writing there; Error(kIo).
  explicit NewFolder(const std::filesystem::path& place);
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  const std::filesystem::path& path() const { return staging_; }  ///< where files are written now
  /// Moves it to its place, durably. Throws Error(kIo).
  void publish();

 private:
  std::filesystem::path place_, staging_, lock_path_;
  std::optional<FileLock> lock_;
  bool is_published_ = false;
};

}  // namespace stretto::interchange
