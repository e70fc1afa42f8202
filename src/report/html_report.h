#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "report/display.h"
#include "report/metrics_log.h"

namespace stretto::report {

/// The most that a page shows, in code points, rows and samples.
inline constexpr size_t kMaxSentence = 1500, kMaxCell = 600, kMaxRows = 200, kMaxSamples = 50;

/// A translation with its attention, as shown in the report.
struct ReportSample {
  std::string source, hypothesis, reference;
  std::vector<std::string> source_pieces, hypothesis_pieces;
  /// [hypothesis pieces][source pieces], or of those alone that are drawn; may be empty
  std::vector<std::vector<float>> attention;
};

/// All that report.html shows.
struct ReportContent {
  std::string title;
  std::string status;  ///< "running", "finished", "stopped: …"
  std::string config_toml;
  std::vector<std::pair<std::string, std::string>> machine;  ///< label, value
  std::vector<std::pair<std::string, std::string>>
      facts;  ///< parameters, vocabulary, data, filters
  std::vector<MetricsEvent> events;
  int64_t samples_step = 0;  ///< at which the samples were translated; 0 = not known
  std::vector<ReportSample> samples;
  int64_t max_steps = 0;    ///< of updates that were stepped; 0 = unknown
  Display display = {};     ///< of the task
  int refresh_seconds = 0;  ///< > 0 while training: the page reloads itself
};

/// One self-contained page: no script from elsewhere, no network, light and dark, escapes all data
/// (Content-Security-Policy default-src 'none').
std::string render_html(const ReportContent& content);

/// Writes it atomically. Throws Error(kIo).
void write_html_report(const std::filesystem::path& path, const ReportContent& content);

}  // namespace stretto::report
