#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/hash.h"

namespace stretto::report {

/// One of a task's own numbers by its key. A whole number is a count and written as one.
struct NamedNumber {
  std::string name;
  std::variant<double, int64_t> value = 0.0;

  bool is_count() const { return std::holds_alternative<int64_t>(value); }
  double as_double() const;
};
using NamedNumbers = std::vector<NamedNumber>;

/// One line of metrics.jsonl. Absent values are not written.
struct MetricsEvent {
  int64_t step = 0;
  int64_t epoch = 0;
  /// "train", "valid", "end"; "data" is a note of the data: of samples that were left out before
  /// the first update, and of changed files where a run goes on.
  std::string event;
  /// `seconds` is the time that the whole run has trained so far, all its sessions together.
  std::optional<double> loss, lr, grad_norm, loss_scale, seconds;
  /// The task's own: what it measures beside the loss, and stands behind it; what an update counted
  /// and how fast, behind `grad_norm`; what validation alone scores, behind `seconds`. In a line
  /// that was read, whole numbers behind the loss are `counts`.
  NamedNumbers measures, counts, scores;
  /// Peaks of this process: resident memory of the host, and on a GPU what tensors held there.
  std::optional<int64_t> peak_memory_bytes, peak_device_memory_bytes;
  std::optional<bool> skipped;
  std::optional<std::string> batch_hash, weights_hash, reason;
  /// `noise_scale` is in what the loss is divided by. `comm_seconds` is how long this update's
  /// gradients and parameters were on their way between processes, `comm_wait_seconds` the part of
  /// it that training waited for, so never more; the difference was hidden behind backward.
  std::optional<double> noise_scale, comm_seconds, comm_wait_seconds;
  std::optional<double> sparsity;           ///< share of the weights that are pruned, if any is
  std::optional<double> data_wait_seconds;  ///< for which this process waited for the micro-batches
  std::optional<int64_t> processes;
  std::optional<std::string>
      note;  ///< what happened: a spike, a rollback, a micro-batch cut in two
  /// True for a "train" event that is there for its note alone, or since the update was skipped,
  /// between those of report.every. No curve has a point for it but that of the loss scale.
  std::optional<bool> unscheduled;

  /// The loss or one of the task's own; absent where the line has none of that name.
  std::optional<double> number(std::string_view name) const;

  /// One JSON object, keys in a fixed order; numbers in the shortest form that reads back to the
  /// same double (so a loss has all its digits); non-finite numbers become null.
  std::string to_json() const;
};

/// What metrics.jsonl held when a checkpoint was written, so that a later process can tell damage.
struct MetricsMark {
  uint64_t bytes = 0;
  uint64_t hash = 0;  ///< XXH3-64
};

/// Where a run goes on.
struct ResumePoint {
  int64_t step = 0;                 ///< of the checkpoint; 0 = there is none
  bool validated = false;           ///< the checkpoint knows of a validation after that step
  std::optional<MetricsMark> mark;  ///< absent in checkpoints of earlier versions
};

/// Appends events to RUN/metrics.jsonl, a whole line per write.
class MetricsLog {
 public:
  /// Opens for appending. After a resume, first cuts the file back to what the checkpoint knows:
  /// later events go, so do an `end` event and a torn last line.
  ///
  /// Damage causes a warning and never stops a run. A line that is no event is left out and named;
  /// the file as it was is kept beside it as bad-metrics.jsonl, bad-metrics-2.jsonl and so on. What
  /// is left is compared with the checkpoint's mark. Throws Error(kIo).
  MetricsLog(const std::filesystem::path& path, const std::optional<ResumePoint>& resume);
  ~MetricsLog();
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;

  /// One write(2), continued where the system took only a part of the line. Throws Error(kIo) when
  /// the line cannot be written whole; the part that was is taken back.
  void write(const MetricsEvent& event);

  /// The mark of what the constructor kept and of what was written since.
  MetricsMark mark() const { return {bytes_, hash_.digest()}; }

 private:
  void go_on_from(const ResumePoint& resume);
  void count(std::string_view bytes);

  int fd_ = -1;
  std::filesystem::path path_;
  uint64_t bytes_ = 0;
  Xxh3Stream hash_;
};

/// A line that is no event.
struct BrokenLine {
  int64_t number = 0;  ///< from 1
  std::string why;
};

/// All events of a file; a torn last line is left out. Throws Error(kBadData) with the line number.
std::vector<MetricsEvent> read_metrics(const std::filesystem::path& path);

/// The same, but lines that are no events are left out and put into `broken`.
std::vector<MetricsEvent> read_metrics(const std::filesystem::path& path,
                                       std::vector<BrokenLine>& broken);

/// The same of a run folder, whose broken lines nobody asks for; nothing where it has no
/// metrics.jsonl. Throws Error(kIo).
std::vector<MetricsEvent> metrics_of_run(const std::filesystem::path& run_directory);

/// Warns of the first few, with file and line, and counts the others.
void warn_of_broken_lines(const std::filesystem::path& path, const std::vector<BrokenLine>& broken);

}  // namespace stretto::report
