#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace stretto::report {

/// One line of metrics.jsonl. Absent values are not written.
struct MetricsEvent {
  int64_t step = 0;
  int64_t epoch = 0;
  std::string event;  ///< "train", "valid", "end"
  /// `seconds` is the time that the whole run has trained so far, all its sessions together;
  /// `tokens_per_second` counts real target tokens.
  std::optional<double> loss, nll, ppl, lr, grad_norm, tokens_per_second, loss_scale, seconds, bleu;
  std::optional<int64_t> target_tokens, source_tokens;
  /// Of this process: resident memory of the host, and on a GPU what tensors held there.
  std::optional<int64_t> peak_memory_bytes, peak_device_memory_bytes;
  std::optional<bool> skipped;
  std::optional<std::string> batch_hash, weights_hash, reason;
  /// `noise_scale` is in target tokens. `comm_seconds` is how long this update's gradients and
  /// parameters were on their way between processes, `comm_wait_seconds` the part of it that
  /// training stood for, so never more; the difference was hidden behind backward.
  std::optional<double> noise_scale, comm_seconds, comm_wait_seconds;
  std::optional<int64_t> processes;
  std::optional<std::string>
      note;  ///< what happened: a spike, a rollback, a micro-batch cut in two

  /// One JSON object, keys in a fixed order; numbers in the shortest form that reads back to the
  /// same double (so a loss has all its digits); non-finite numbers become null.
  std::string to_json() const;
};

/// Appends events to RUN/metrics.jsonl, a whole line per write.
class MetricsLog {
 public:
  /// Opens for appending; after a resume, first cuts the file back to events with
  /// step <= `resume_step` (and drops an `end` event and a torn last line). Throws Error(kIo).
  MetricsLog(const std::filesystem::path& path, std::optional<int64_t> resume_step);
  ~MetricsLog();
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;

  /// One write(2). Throws Error(kIo) when the line cannot be written whole; the part that was is
  /// taken back.
  void write(const MetricsEvent& event);

 private:
  int fd_ = -1;
  std::filesystem::path path_;
};

/// All events of a file; a torn last line is left out. Throws Error(kBadData) with the line number.
std::vector<MetricsEvent> read_metrics(const std::filesystem::path& path);

}  // namespace stretto::report
