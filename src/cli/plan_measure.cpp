#include "cli/plan_measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <utility>

#include "base/child_process.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/program_path.h"
#include "base/text.h"
#include "base/told_error.h"
#include "experiment/family_spec.h"
#include "report/metrics_log.h"

namespace stretto::cli {
namespace {

namespace fs = std::filesystem;
using report::MetricsEvent;

constexpr int64_t kFewestUpdates = 6;
constexpr int64_t kWarmUpdates = 2;    // they make caches and buffers
constexpr double kLossTail = 1.0 / 8;  // of the updates: losses before are of the warm-up
constexpr double kLossBin = 1.15;      // ratio of the updates that one mean is over
constexpr auto kLook = std::chrono::milliseconds(200);
constexpr auto kSaving = std::chrono::seconds(120);
/// So many times the time that was asked for, where updates are slow.
constexpr double kMostTimes = 20;

double middle_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::vector<MetricsEvent> updates_of(const fs::path& run_directory) {
  std::vector<MetricsEvent> updates;
  for (auto& event : report::metrics_of_run(run_directory)) {
    const bool counts = event.event == "train" && !event.unscheduled.value_or(false) &&
                        !event.skipped.value_or(false);
    if (counts) updates.push_back(std::move(event));
  }
  return updates;
}

/// Whether a training has come to a limit of its own: there is no more of it to be measured.
bool has_ended_itself(const fs::path& run_directory) {
  const auto events = report::metrics_of_run(run_directory);
  if (events.empty() || events.back().event != "end") return false;
  const std::string reason = events.back().reason.value_or("");
  return reason.starts_with("train.max_steps") || reason.starts_with("train.max_epochs");
}

bool is_measured(const std::vector<MetricsEvent>& updates, double seconds) {
  if (static_cast<int64_t>(updates.size()) < kFewestUpdates) return false;
  return updates.back().seconds.value_or(0) >= seconds;
}

// Neither validations nor checkpoints are to be measured. The run's own limits stay.
std::vector<std::string> measuring_words(const MeasureRequest& request) {
  std::vector<std::string> words{program_path().string(), "train", request.config};
  words.insert(words.end(), request.overrides.begin(), request.overrides.end());
  const std::string hours = shortest(request.seconds * kMostTimes / 3600);
  for (const char* key : {"report.every=1", "eval.every=1000000000", "eval.at_start=false",
                          "train.patience=0", "train.stop=none", "train.save_every=1000000000"}) {
    words.emplace_back(key);
  }
  words.push_back("train.max_hours=" + hours);
  words.insert(words.end(), {"--run", request.directory.string(), "--quiet"});
  return words;
}

std::string complaint_in(const fs::path& output) {
  return printable(last_told_error(read_file(output, uint64_t{1} << 20)), 1000);
}

// Means over bins of updates that grow in proportion, so that late updates do not outweigh all.
std::vector<plan::LossPoint> losses_of(const std::vector<MetricsEvent>& updates,
                                       double parameters) {
  std::vector<plan::LossPoint> losses;
  const double last = static_cast<double>(updates.back().step);
  double sum = 0, steps = 0, count = 0, end = 0;
  const auto close = [&] {
    if (count > 0 && sum > 0) losses.push_back({parameters, steps / count, sum / count});
    sum = steps = count = 0;
  };
  for (const MetricsEvent& update : updates) {
    const auto step = static_cast<double>(update.step);
    if (step < kLossTail * last || !update.loss || !std::isfinite(*update.loss)) continue;
    if (step > end) {
      close();
      end = step * kLossBin;
    }
    sum += *update.loss;
    steps += step;
    ++count;
  }
  close();
  return losses;
}

double number_of(const MetricsEvent& event, const std::string& key) {
  return key.empty() ? 0 : event.number(key).value_or(0);
}

}  // namespace

void train_to_measure(const MeasureRequest& request) {
  const auto before = updates_of(request.directory);
  const bool has_some = static_cast<int64_t>(before.size()) >= kFewestUpdates;
  if (is_measured(before, request.seconds)) return;
  if (has_some && has_ended_itself(request.directory)) return;
  log::info("trains in " + request.directory.string() + " for " + human_duration(request.seconds) +
            ", to measure it");
  make_directories(request.directory);
  const fs::path output = request.directory / "output.txt";
  ChildProcess child(measuring_words(request), ChildProcess::OutputFile{output});
  while (!child.wait_for(kLook)) {
    if (!is_measured(updates_of(request.directory), request.seconds)) continue;
    child.send(ChildProcess::kEnd);
    child.wait_for(kSaving);
    break;
  }
  if (static_cast<int64_t>(updates_of(request.directory).size()) >= kFewestUpdates) return;
  const std::string why = complaint_in(output);
  throw Error(ExitCode::kUsage,
              "plan --hours: " + request.directory.string() + " could not be measured" +
                  (why.empty() ? "" : ": " + why),
              "its output is in " + output.string() + "; `stretto check` looks at a configuration");
}

int64_t measured_update_freq(const experiment::Experiment& e) {
  const bool can_measure = e.train.noise_scale && e.optim.lr_scaling == "none";
  return can_measure ? std::max<int64_t>(2, e.train.update_freq) : e.train.update_freq;
}

plan::MeasuredSize measured_run(const fs::path& run_directory, const experiment::Experiment& e,
                                const plan::ModelSize& size, int64_t update_freq) {
  auto updates = updates_of(run_directory);
  if (static_cast<int64_t>(updates.size()) < kFewestUpdates) {
    throw Error(ExitCode::kUsage, run_directory.string() + " has measured too little",
                "metrics.jsonl needs " + std::to_string(kFewestUpdates) +
                    " `train` events; see report.every");
  }
  if (updates.back().processes.value_or(1) > 1) {
    throw Error(ExitCode::kUsage, run_directory.string() + " was trained by several processes",
                "name runs of one process: those of others are predicted from them");
  }
  updates.erase(updates.begin(), updates.begin() + kWarmUpdates);
  const auto display = experiment::display_of(e);
  std::vector<double> seconds;
  plan::MeasuredSize measured;
  measured.size = size;
  measured.micro_batches = static_cast<double>(update_freq);
  const auto n = static_cast<double>(updates.size());
  for (const MetricsEvent& update : updates) {
    const double units = number_of(update, display.rate.batch);
    const double rate = number_of(update, display.rate.key);
    if (rate > 0) seconds.push_back(units / rate);
    measured.units += units / n;
    measured.batch += number_of(update, display.loss_unit.count) / n;
    const auto& peak = update.peak_device_memory_bytes ? update.peak_device_memory_bytes
                                                       : update.peak_memory_bytes;
    measured.peak_bytes = std::max(measured.peak_bytes, static_cast<double>(peak.value_or(0)));
    if (update.noise_scale) measured.noise_scale = *update.noise_scale;
  }
  if (seconds.empty() || measured.units <= 0 || measured.peak_bytes <= 0) {
    throw Error(ExitCode::kUsage, run_directory.string() + " has measured neither time nor memory",
                "its metrics.jsonl is of another version; train it anew");
  }
  measured.seconds = middle_of(std::move(seconds));
  measured.losses = losses_of(updates, size.parameters);
  return measured;
}

}  // namespace stretto::cli
