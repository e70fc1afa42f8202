#pragma once

#include <filesystem>

namespace stretto::dist {

/// A folder in TMPDIR in which the ranks of one job leave their reports and their output. It is
/// removed with the object; one whose launcher was killed is removed when the next job of the same
/// user starts.
class JobFolder {
 public:
  /// Throws Error(kIo) when TMPDIR is no folder or cannot be written to.
  JobFolder();
  ~JobFolder();
  JobFolder(const JobFolder&) = delete;
  JobFolder& operator=(const JobFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int lock_ = -1;  ///< an open file, locked as long as the launcher lives
};

/// Removes the folders in `place` that `JobFolder` made for this user and whose launcher has ended.
void remove_stale_job_folders(const std::filesystem::path& place);

}  // namespace stretto::dist
