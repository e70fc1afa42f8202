#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace stretto {

/// What a folder /proc/PID tells about a process. All readings are empty or false for one that has
/// ended, or that is not ours to look at.
class OtherProcess {
 public:
  explicit OtherProcess(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::string pid() const { return folder_.filename().string(); }
  /// The letter of its state ('R', 'S', 'T', …); 0 = no process.
  char state() const;
  /// Stopped by SIGSTOP or a debugger.
  bool is_stopped() const;

 private:
  std::filesystem::path folder_;
};

/// The variables that a process was started with.
class OtherEnvironment {
 public:
  explicit OtherEnvironment(const std::filesystem::path& folder);
  /// Null when it has none of that name.
  const char* get(const std::string& name) const;

 private:
  std::vector<std::string> entries_;
};

/// The folders of all processes in `proc`, "/proc" but for tests.
std::vector<std::filesystem::path> process_folders(const std::filesystem::path& proc);

}  // namespace stretto
