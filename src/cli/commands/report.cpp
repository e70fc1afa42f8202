#include <iostream>

#include "base/error.h"
#include "base/log.h"
#include "base/stdout.h"
#include "cli/command.h"
#include "cli/run_config.h"
#include "experiment/family_spec.h"
#include "experiment/run_config.h"
#include "report/html_report.h"
#include "report/report_data.h"

namespace stretto::cli {
namespace {

namespace fs = std::filesystem;

std::string status_of(const std::vector<report::MetricsEvent>& events) {
  if (events.empty()) return "no event yet";
  const auto& last = events.back();
  if (last.event != "end") return "stopped at update " + std::to_string(last.step);
  return last.reason ? "finished: " + *last.reason : "finished";
}

// One broken line, or a broken file beside the metrics, must not cost the whole page.
std::vector<report::MetricsEvent> events_of(const fs::path& metrics) {
  std::vector<report::BrokenLine> broken;
  auto events = report::read_metrics(metrics, broken);
  if (events.empty() && !broken.empty()) report::read_metrics(metrics);  // throws: nothing is left
  report::warn_of_broken_lines(metrics, broken);
  return events;
}

void add_data(const fs::path& directory, report::ReportContent& content) {
  const fs::path path = directory / report::kReportDataFile;
  try {
    report::read_report_data(path, content);
  } catch (const Error& error) {
    std::error_code ignored;
    const std::string why =
        fs::exists(path, ignored) ? error.message() : "there is no " + path.string();
    log::warn("the page has no samples, no machine and no facts: " + why);
  }
}

int run_report(const fs::path& directory) {
  const auto loaded = load_run_config(directory, {});
  const fs::path metrics = directory / "metrics.jsonl";
  if (!fs::exists(metrics)) {
    throw Error(ExitCode::kUsage, directory.string() + " has no metrics.jsonl",
                "training writes it; there is nothing to show yet");
  }
  const auto& options = loaded.options;
  report::ReportContent content{.title = options.run.name.empty()
                                             ? fs::absolute(directory).lexically_normal().filename()
                                             : fs::path(options.run.name),
                                .config_toml = experiment::read_run_config(directory),
                                .events = events_of(metrics),
                                .max_steps = options.train.max_steps,
                                .display = experiment::display_of(options)};
  add_data(directory, content);
  content.status = status_of(content.events);
  const fs::path page = directory / "report.html";
  report::write_html_report(page, content);
  std::cout << shown_on_stdout(page.string()) << "\n";
  return 0;
}

}  // namespace

std::function<int()> declare_report(CLI::App& app) {
  auto directory = std::make_shared<std::string>();
  app.add_option("RUN", *directory, "run folder")->required()->type_name("");
  return [directory] { return run_report(*directory); };
}

}  // namespace stretto::cli
