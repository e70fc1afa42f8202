#pragma once

#include <filesystem>
#include <optional>

#include "base/file.h"

namespace stretto::interchange {

/// Throws Error(kUsage) when something is at `place` that is not an empty folder: for commands that
/// compute before they write.
void require_free_place(const std::filesystem::path& place);

/// A folder that appears at its place only when it is whole. Until then it is `.tmp-NAME` beside
/// it, or `.tmp-NAME-1` and so on where there is a file or folder of that name. The file
/// `.stretto-lock` in it is held meanwhile, and shows that Stretto made the folder: this object
/// removes it when it goes, and the next one of the same place what a killed process left. A folder
/// without that file is nobody's to remove.
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
  /// Makes the folder with its lock. @return false when something that is not ours has the name
  bool claim(const std::filesystem::path& staging);

  std::filesystem::path place_, staging_;
  std::optional<FileLock> lock_;
  bool is_published_ = false;
};

}  // namespace stretto::interchange
