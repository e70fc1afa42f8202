#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/child_process.h"
#include "base/descriptor.h"
#include "search/places.h"
#include "search/scheduler.h"
#include "search/search_plan.h"

namespace stretto::search {

/// What a trial's process is asked to do.
struct TrialRun {
  std::filesystem::path config;        ///< the configuration
  std::vector<std::string> overrides;  ///< of the plan, then of the point
  std::filesystem::path directory;     ///< run folder: DIR/trials/N
  int64_t until = 0;                   ///< updates in all
  int64_t threads = 1;                 ///< of all its processes
  std::vector<std::string> gpus = {};  ///< that it has alone, one for each of its processes
  bool accept_data = false;            ///< it goes on although its data have changed
};

/// The words of a trial's process: `stretto train`, but for tests.
using TrialCommand = std::function<std::vector<std::string>(const TrialRun&)>;

/// `PROGRAM train CONFIG KEY=VALUE… --run DIRECTORY --until STEP --quiet`, and maybe `--processes`
/// and `--accept-data`
std::vector<std::string> train_words(const std::string& program, const TrialRun& run);

/// How trials are started on other hosts.
struct RemoteStart {
  std::vector<std::string> shell;    ///< "ssh" and its options
  std::vector<std::string> watcher;  ///< what runs watch_trial() there (search/watched_trial.h)
};

/// A trial that trains, as a process of its own. It dies with this one: then it gets SIGINT, saves
/// and leaves, on another host too. Its output goes to the end of `DIRECTORY/output.txt`.
class TrialProcess {
 public:
  TrialProcess(Job job, TrialRun run, Places::Place place);

  /// The words of a process on this machine.
  void set_words(std::vector<std::string> words) { words_ = std::move(words); }
  /// Those of one on another host. Throws Error(kUsage) when $PATH has no such shell.
  void set_remote_words(const RemoteStart& start, const std::string& host,
                        std::vector<std::string> words);

  const Job& job() const { return job_; }
  const Places::Place& place() const { return place_; }
  bool is_remote() const { return is_remote_; }
  /// Starts the process, once no other one holds the run folder: that of a killed search may still
  /// be saving. @return its exit code once it has ended, 128 + signal when it was killed
  /// Throws Error(kUsage) that names the process which still holds it after five minutes.
  std::optional<int> poll();
  /// Asks it to save and leave.
  void stop();
  /// The last line of its output that says what went wrong; empty = none does.
  std::string complaint() const;
  /// The last line of its output at all.
  std::string last_line() const;

 private:
  using Clock = std::chrono::steady_clock;

  bool may_start() const;
  void start();
  void send_heartbeat();
  std::string own_output() const;

  Job job_;
  TrialRun run_;
  Places::Place place_;
  bool is_remote_ = false;
  std::vector<std::string> words_, variables_;
  Descriptor line_;  // to the watcher on another host: closed, it ends the trial
  std::optional<ChildProcess> process_;
  uint64_t output_begin_ = 0;  // of this process in output.txt
  bool stopped_ = false;
  Clock::time_point began_ = Clock::now(), told_{};
};

}  // namespace stretto::search
