#include "search/trial_process.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "report/metrics_log.h"

namespace stretto::search {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOutput = "output.txt";
constexpr double kPatienceSeconds = 120;  // for a process of a killed search that saves
constexpr size_t kMostOutput = size_t{16} << 20;

// Torn and broken lines are left out.
std::vector<report::MetricsEvent> validation_events(const fs::path& run_directory) {
  const fs::path path = run_directory / "metrics.jsonl";
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return {};
  std::vector<report::BrokenLine> broken;
  auto events = report::read_metrics(path, broken);
  std::erase_if(events, [](const auto& event) { return event.event != "valid"; });
  return events;
}

}  // namespace

std::vector<std::string> train_words(const std::string& program, const TrialRun& run) {
  std::vector<std::string> words{program, "train", run.config.string()};
  words.insert(words.end(), run.overrides.begin(), run.overrides.end());
  words.push_back("run.threads=" + std::to_string(run.threads));
  words.insert(words.end(),
               {"--run", run.directory.string(), "--until", std::to_string(run.until), "--quiet"});
  return words;
}

TrialProcess::TrialProcess(Job job, TrialRun run, const TrialCommand& command)
    : job_(job), run_(std::move(run)), words_(command(run_)) {
  make_directories(run_.directory);
}

bool TrialProcess::may_start() const {
  return !FileLock::is_held(run_.directory / ".lock") || seconds_since(began_) > kPatienceSeconds;
}

std::optional<int> TrialProcess::poll() {
  if (process_) return process_->poll();
  if (stopped_) return static_cast<int>(ExitCode::kInterrupted);
  if (may_start()) {
    process_.emplace(words_, ChildProcess::OutputFile{run_.directory / kOutput});
  }
  return std::nullopt;
}

void TrialProcess::stop() {
  stopped_ = true;
  if (process_) process_->send(ChildProcess::kEnd);
}

std::string TrialProcess::complaint() const {
  std::string text;
  try {
    text = read_file(run_.directory / kOutput, kMostOutput);
  } catch (const Error&) {
    return "";
  }
  std::string last;
  for (const auto& line : split(text, '\n')) {
    if (line.starts_with("error: ")) last = line.substr(7);
  }
  return printable(last, 1000);
}

std::optional<LastValidation> last_validation(const fs::path& run_directory,
                                              const std::string& metric) {
  const auto events = validation_events(run_directory);
  if (events.empty()) return std::nullopt;
  const auto& last = events.back();
  auto value = last.number(metric);
  if (value && !std::isfinite(*value)) value = std::nullopt;
  return LastValidation{.step = last.step, .value = value, .seconds = last.seconds.value_or(0)};
}

std::vector<report::Point> validations_of(const fs::path& run_directory,
                                          const std::string& metric) {
  std::vector<report::Point> points;
  try {
    for (const auto& event : validation_events(run_directory)) {
      const auto value = event.number(metric);
      if (value && event.step > 0) points.push_back({static_cast<double>(event.step), *value});
    }
  } catch (const Error&) {
    // The page lacks a curve; the result itself is read elsewhere, and complains there.
  }
  return points;
}

}  // namespace stretto::search
