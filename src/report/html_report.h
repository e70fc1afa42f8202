#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "report/display.h"
#include "report/metrics_log.h"
#include "report/page.h"
#include "report/sample.h"

namespace stretto::report {

/// All that report.html shows.
struct ReportContent {
  std::string title;
  std::string status;  ///< "running", "finished", "stopped: …"
  std::string config_toml;
  std::vector<std::pair<std::string, std::string>> machine;  ///< label, value
  std::vector<std::pair<std::string, std::string>>
      facts;  ///< parameters, vocabulary, data, filters
  std::vector<MetricsEvent> events;
  int64_t samples_step = 0;  ///< at which the samples were made; 0 = not known
  std::vector<Sample> samples;
  int64_t max_steps = 0;    ///< of updates that were stepped; 0 = unknown
  Display display = {};     ///< of the task
  int refresh_seconds = 0;  ///< > 0 while training: the page reloads itself
};

/// One self-contained page: no script, no network, light and dark, escapes all data (page.h
/// has its policy). Samples beyond kMaxSamples are left out, and of sounds and pictures those that
/// kept_media() leaves out.
std::string render_html(const ReportContent& content);

/// Writes it atomically. Throws Error(kIo).
void write_html_report(const std::filesystem::path& path, const ReportContent& content);

}  // namespace stretto::report
