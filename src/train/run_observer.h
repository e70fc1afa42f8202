#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "report/html_report.h"
#include "report/metrics_log.h"
#include "report/progress.h"
#include "report/report_options.h"
#include "report/tensorboard.h"
#include "train/task.h"

namespace stretto::train {

/// What the report says about a run beside its curves.
struct RunDescription {
  std::string title;
  std::string config_toml;
  std::vector<std::pair<std::string, std::string>> machine;
  std::vector<std::pair<std::string, std::string>> facts;
  int64_t max_steps = 0;
  report::Display display = {};  ///< how the task's numbers are told and drawn
};

/// All that people watch: the progress line, metrics.jsonl, TensorBoard events, report.html and
/// what that is made of, report.json.
///
/// metrics.jsonl must be written (a failure is thrown); the others may fail, which is said once.
///
/// No event is kept in memory, and the page is drawn from the file: an object that is made at each
/// report and stays would lie among the tensors of that update, and split the memory that they
/// leave when they are freed.
class RunObserver {
 public:
  /// @param resume  the restored checkpoint, {} for a fresh run: what an earlier process wrote of
  ///                later steps is cut away; its samples are shown until there are others
  RunObserver(const std::filesystem::path& run_directory, report::ReportOptions options,
              RunDescription description, const report::ResumePoint& resume);
  ~RunObserver();

  /// Every event: to metrics.jsonl, TensorBoard and the report.
  void event(const report::MetricsEvent& event);
  void samples(int64_t step, const std::vector<report::Sample>& samples);
  void progress(const report::ProgressState& state) { progress_.update(state); }
  void activity(const std::string& what) { progress_.set_activity(what); }
  /// Last page of the report; `status` as it shall stand there.
  void finish(const std::string& status);
  /// For the next checkpoint.
  report::MetricsMark metrics_mark() const { return metrics_.mark(); }

 private:
  void take_over_samples();
  void write_data();
  void write_html(const std::string& status, int refresh_seconds);
  void picture(const char* what, const std::function<void()>& draw);

  std::filesystem::path run_directory_;
  report::ReportOptions options_;
  report::MetricsLog metrics_;
  report::Progress progress_;
  std::unique_ptr<report::TensorBoardWriter> tensorboard_;
  report::ReportContent content_;  ///< without events
  std::chrono::steady_clock::time_point last_html_;
  std::chrono::duration<double> html_cost_{0};  ///< of drawing the page the last time
  bool picture_failed_ = false;
};

}  // namespace stretto::train
