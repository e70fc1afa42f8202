#pragma once

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace stretto::search {

/// A trial on another host than its search.
struct WatchedTrial {
  std::vector<std::string> words;           ///< its program and words
  std::filesystem::path folder;             ///< where the search was started
  std::filesystem::path run_directory;      ///< must be there: hosts share it
  std::vector<std::string> variables = {};  ///< "NAME=value"
  /// The search is lost when nothing has come from it for so long.
  std::chrono::milliseconds silence{std::chrono::minutes(2)};
};

/// Exit code of watch_trial() where the host cannot run the trial: it is no fault of the trial.
inline constexpr int kHostCannotRun = 126;

/// Runs the trial, while its search writes a byte to `input` now and then. When the search is lost,
/// or this process is asked to end, the trial gets SIGINT, saves and leaves.
/// @return the trial's exit code, 128 + signal when it was killed
/// Throws Error(kUsage) where this host does not see the folders, Error(kIo).
int watch_trial(const WatchedTrial& trial, int input = STDIN_FILENO);

/// The words that start the program `watcher` with its words on another host.
/// @param shell    "ssh" and its options
/// @param watcher  program and words of what runs watch_trial()
std::vector<std::string> remote_words(const std::vector<std::string>& shell,
                                      const std::string& host,
                                      const std::vector<std::string>& watcher,
                                      const WatchedTrial& trial);

/// A word as shells read it back.
std::string shell_quoted(const std::string& word);

}  // namespace stretto::search
