#pragma once

#include <filesystem>
#include <memory>

namespace stretto::launcher {

/// A folder for what belongs to one job: in TMPDIR the reports and the output of its ranks and what
/// mpirun keeps on disk, in /dev/shm the memory that the ranks share. It is removed with the
/// object, whatever became of mpirun; one whose launcher was killed is removed when the next job of
/// the same user starts.
class JobFolder {
 public:
  /// In TMPDIR. Throws Error(kIo) when that is no folder or cannot be written to.
  JobFolder();
  /// In `place`. Throws Error(kIo) when it cannot be written to.
  explicit JobFolder(const std::filesystem::path& place);
  ~JobFolder();
  JobFolder(const JobFolder&) = delete;
  JobFolder& operator=(const JobFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int lock_ = -1;  ///< an open file, locked as long as the launcher lives
};

/// A folder in /dev/shm; null where there is none to write to.
std::unique_ptr<JobFolder> shared_memory_folder();

}  // namespace stretto::launcher
