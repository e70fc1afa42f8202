#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "report/metrics_log.h"

namespace stretto::report {

/// A translation with its attention, as shown in the report.
struct ReportSample {
  std::string source, hypothesis, reference;
  std::vector<std::string> source_pieces, hypothesis_pieces;
  std::vector<std::vector<float>> attention;  ///< [hypothesis pieces][source pieces]; may be empty
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
  std::vector<ReportSample> samples;
  int64_t max_steps = 0;
  int refresh_seconds = 0;  ///< > 0 while training: the page reloads itself
};

/// One self-contained page: no script from elsewhere, no network, light and dark, escapes all data
/// (Content-Security-Policy default-src 'none').
std::string render_html(const ReportContent& content);

/// Writes it atomically. Throws Error(kIo).
void write_html_report(const std::filesystem::path& path, const ReportContent& content);

}  // namespace stretto::report
