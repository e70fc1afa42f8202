#include "search/trial_process.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/told_error.h"
#include "search/watched_trial.h"

namespace stretto::search {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOutput = "output.txt";
constexpr double kPatienceSeconds = 300;  // for a process of a killed search that saves
constexpr double kTellSeconds = 5;        // between two signs of life to another host
constexpr size_t kMostOutput = size_t{16} << 20;

// A program without a folder is one of $PATH.
std::vector<std::string> with_path(std::vector<std::string> words) {
  if (words.front().find('/') != std::string::npos) return words;
  const std::string path = find_program(words.front());
  if (path.empty()) {
    throw Error(
        ExitCode::kUsage,
        "search.remote_shell: there is no program `" + printable(words.front()) + "` in $PATH",
        "install it, or give its path");
  }
  words.front() = path;
  return words;
}

}  // namespace

std::vector<std::string> train_words(const std::string& program, const TrialRun& run) {
  const auto processes = std::max<int64_t>(1, std::ssize(run.gpus));
  std::vector<std::string> words{program, "train", run.config.string()};
  words.insert(words.end(), run.overrides.begin(), run.overrides.end());
  words.push_back("run.threads=" + std::to_string(std::max<int64_t>(1, run.threads / processes)));
  words.insert(words.end(),
               {"--run", run.directory.string(), "--until", std::to_string(run.until), "--quiet"});
  if (processes > 1) words.insert(words.end(), {"--processes", std::to_string(processes)});
  if (run.accept_data) words.push_back("--accept-data");
  return words;
}

TrialProcess::TrialProcess(Job job, TrialRun run, Places::Place place)
    : job_(job), run_(std::move(run)), place_(std::move(place)) {
  make_directories(run_.directory);
  if (!place_.gpus.empty()) variables_.push_back("CUDA_VISIBLE_DEVICES=" + join(place_.gpus, ","));
}

void TrialProcess::set_remote_words(const RemoteStart& start, const std::string& host,
                                    std::vector<std::string> words) {
  is_remote_ = true;
  words_ = remote_words(with_path(start.shell), host, start.watcher,
                        {.words = std::move(words),
                         .folder = fs::current_path(),
                         .run_directory = run_.directory,
                         .variables = std::exchange(variables_, {})});
}

// After this time the lock cannot be held by a trial of the killed search; some other process has
// it.
bool TrialProcess::may_start() const {
  const fs::path lock = run_.directory / ".lock";
  if (!FileLock::is_held(lock)) return true;
  if (seconds_since(began_) > kPatienceSeconds) FileLock::try_now(lock, "stretto search");
  return false;
}

void TrialProcess::start() {
  const fs::path output = run_.directory / kOutput;
  std::error_code is_new;
  const auto size = fs::file_size(output, is_new);
  output_begin_ = is_new ? 0 : size;
  if (!is_remote_) {
    process_.emplace(words_, ChildProcess::OutputFile{output}, variables_);
    return;
  }
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
    throw_io_error("cannot make a pipe for", output, errno);
  const Descriptor input(ends[0]);
  line_.reset(ends[1]);
  // Each end is non-blocking or not by itself: the program reads as usual.
  ::fcntl(input.get(), F_SETFL, 0);
  process_.emplace(words_, ChildProcess::OutputFile{output, input.get()}, variables_);
}

// A full pipe holds enough of them already.
void TrialProcess::send_heartbeat() {
  if (!line_ || seconds_since(told_) < kTellSeconds) return;
  told_ = Clock::now();
  if (::write(line_.get(), "\n", 1) < 0 && errno == EPIPE) line_.reset();
}

std::optional<int> TrialProcess::poll() {
  if (process_) {
    send_heartbeat();
    return process_->poll();
  }
  if (stopped_) return static_cast<int>(ExitCode::kInterrupted);
  if (may_start()) start();
  return std::nullopt;
}

void TrialProcess::stop() {
  stopped_ = true;
  line_.reset();
  if (process_ && !is_remote_) process_->send(ChildProcess::kEnd);
}

// The output of this process alone: what earlier ones complained about has been reported.
std::string TrialProcess::own_output() const {
  try {
    const std::string text = read_file(run_.directory / kOutput, kMostOutput);
    return text.substr(std::min<size_t>(output_begin_, text.size()));
  } catch (const Error&) {
    return {};
  }
}

std::string TrialProcess::complaint() const {
  return printable(last_told_error(own_output()), 1000);
}

std::string TrialProcess::last_line() const {
  std::string last;
  for (const auto& line : split(own_output(), '\n')) {
    if (!trim(line).empty()) last = trim(line);
  }
  return printable(last, 1000);
}

}  // namespace stretto::search
