#include "search/watched_trial.h"

#include <poll.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <optional>

#include "base/child_process.h"
#include "base/error.h"
#include "base/signals.h"
#include "base/system_info.h"

namespace stretto::search {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kLook = 50ms;
constexpr auto kTimeToSave = 5min;  // for a trial that saves

void require_folder(const fs::path& folder) {
  std::error_code error;
  if (fs::is_directory(folder, error)) return;
  throw Error(ExitCode::kUsage, host_name() + " does not see " + folder.string(),
              "all hosts of a search need its folders on a file system that they share");
}

/// Listens to the search.
class SearchLine {
 public:
  SearchLine(int input, std::chrono::milliseconds silence) : input_(input), silence_(silence) {}

  /// Waits a moment. @return whether the search is lost
  bool is_lost() {
    pollfd ready{.fd = input_, .events = POLLIN, .revents = 0};
    const int count = ::poll(&ready, 1, static_cast<int>(kLook.count()));
    if (count > 0) {
      char bytes[256];
      const ssize_t size = ::read(input_, bytes, sizeof bytes);
      if (size > 0) heard_ = Clock::now();
      if (size == 0 || (size < 0 && errno != EINTR && errno != EAGAIN)) return true;
    }
    return Clock::now() - heard_ > silence_;
  }

 private:
  int input_;
  std::chrono::milliseconds silence_;
  Clock::time_point heard_ = Clock::now();
};

}  // namespace

int watch_trial(const WatchedTrial& trial, int input) {
  require_folder(trial.folder);
  require_folder(trial.run_directory);
  fs::current_path(trial.folder);
  const StopSignals signals;
  ChildProcess process(trial.words, ChildProcess::Stderr::kShared, trial.variables);
  SearchLine line(input, trial.silence);
  while (!line.is_lost() && !signals.requested()) {
    if (const auto code = process.poll()) return *code;
  }
  process.send(ChildProcess::kEnd);
  if (process.wait_for(kTimeToSave)) return *process.poll();
  return static_cast<int>(ExitCode::kInterrupted);
}

std::string shell_quoted(const std::string& word) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("._-/=:,@%+").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::vector<std::string> remote_words(const std::vector<std::string>& shell,
                                      const std::string& host,
                                      const std::vector<std::string>& watcher,
                                      const WatchedTrial& trial) {
  std::vector<std::string> words = watcher;
  words.push_back("--folder=" + trial.folder.string());
  words.push_back("--run=" + trial.run_directory.string());
  for (const auto& variable : trial.variables) words.push_back("--variable=" + variable);
  for (const auto& word : trial.words) words.push_back("--word=" + word);
  std::string command;
  for (const auto& word : words) command += (command.empty() ? "" : " ") + shell_quoted(word);
  std::vector<std::string> all = shell;
  all.insert(all.end(), {host, command});
  return all;
}

}  // namespace stretto::search
