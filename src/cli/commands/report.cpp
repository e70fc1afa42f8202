#include <algorithm>
#include <iostream>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/named_output.h"
#include "base/stdout.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/run_config.h"
#include "experiment/experiment_schema.h"
#include "experiment/family_spec.h"
#include "experiment/run_config.h"
#include "experiment/scaled_rate.h"
#include "experiment/task_rules.h"
#include "report/batch_figure.h"
#include "report/comparison_page.h"
#include "report/html_report.h"
#include "report/report_data.h"

namespace stretto::cli {
namespace {

namespace fs = std::filesystem;

struct Request {
  std::vector<std::string> runs;
  std::string output;
  bool json = false;
};

std::string status_of(const fs::path& directory, const std::vector<report::MetricsEvent>& events) {
  const bool trains = FileLock::is_held(directory / ".lock");
  if (events.empty()) return trains ? "running, no event yet" : "no event yet";
  const auto& last = events.back();
  if (trains) return "running, update " + std::to_string(last.step);
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

std::string title_of(const fs::path& directory, const experiment::Experiment& options) {
  if (!options.run.name.empty()) return options.run.name;
  auto path = fs::absolute(directory).lexically_normal();
  if (path.filename().empty()) path = path.parent_path();  // "runs/my/"
  return path.filename().string();
}

struct ReadRun {
  experiment::Experiment options;
  report::ReportContent content;
  bool has_metrics = false;  ///< a run that has just begun has none, and no data of a report
};

ReadRun read_run(const fs::path& directory) {
  require_run(directory);
  const std::string toml = experiment::read_run_config(directory);
  ReadRun run{
      .options = experiment::load_stored_experiment(toml, (directory / "config.toml").string(), {})
                     .options,
      .content = {}};
  const fs::path metrics = directory / "metrics.jsonl";
  run.has_metrics = fs::exists(metrics);
  run.content.title = title_of(directory, run.options);
  run.content.config_toml = toml;
  run.content.max_steps = run.options.train.max_steps;
  run.content.display = experiment::display_of(run.options);
  if (run.has_metrics) {
    run.content.events = events_of(metrics);
    add_data(directory, run.content);
  }
  run.content.status = status_of(directory, run.content.events);
  return run;
}

// Every key, those that name files too: they are shown, and nothing is opened.
std::vector<std::pair<std::string, std::string>> keys_of(experiment::Experiment options) {
  std::vector<std::pair<std::string, std::string>> keys;
  for (const auto& key : experiment::experiment_schema(options).keys) {
    keys.emplace_back(key.path, config::value_text(key.value));
  }
  return keys;
}

std::string warmup_of(const optim::ScheduleOptions& schedule) {
  const bool has_none = schedule.warmup_steps == 0 && schedule.warmup_ratio == 0;
  return has_none ? "no warm-up" : schedule.warmup + " warm-up";
}

report::BatchSetting batch_of(const experiment::Experiment& options) {
  const auto* rules = experiment::find_task_rules(options);
  if (rules == nullptr) return {};
  const auto micro_batch = rules->micro_batch(options);
  return {.size = experiment::ScaledRate(options, rules).batch,
          .unit = micro_batch.unit,
          .warmup = warmup_of(options.schedule),
          .keys = {micro_batch.key, "train.update_freq"}};
}

report::ComparedRun compared(const fs::path& directory, ReadRun run) {
  return {.name = run.content.title,
          .folder = directory.string(),
          .task = run.options.task.name(),
          .status = run.content.status,
          .machine = std::move(run.content.machine),
          .events = std::move(run.content.events),
          .display = run.content.display,
          .keys = keys_of(run.options),
          .batch = batch_of(run.options)};
}

void tell_page(const fs::path& page) {
  if (is_file_output(page)) std::cout << shown_on_stdout(page.string()) << "\n";
}

// ---- several runs -------------------------------------------------------------------------------

[[noreturn]] void throw_too_many(size_t runs, size_t most, const std::string& except) {
  throw Error(ExitCode::kUsage,
              counted(static_cast<int64_t>(runs), "run") + " cannot be told apart on one page",
              "give at most " + std::to_string(most) + except);
}

// Of more runs than have curves, a page has what they reach with batches of several sizes.
void require_figure(const report::Comparison& comparison) {
  if (report::has_curves(comparison)) return;
  if (report::batch_figure(comparison, report::curves_of(comparison.runs))) return;
  throw_too_many(comparison.runs.size(), report::kMostComparedRuns,
                 ", or runs that have validations and differ in their batch");
}

void require_comparable(const Request& request) {
  if (request.runs.size() > report::kMostRuns) {
    throw_too_many(request.runs.size(), report::kMostRuns, "");
  }
  std::vector<fs::path> seen;
  for (const std::string& run : request.runs) {
    require_run(run);
    const fs::path folder = fs::canonical(run);
    if (std::ranges::count(seen, folder) > 0) {
      throw Error(ExitCode::kUsage, run + " is given twice", "give each run once");
    }
    seen.push_back(folder);
  }
}

struct ReadRuns {
  report::Comparison comparison;
  std::optional<Error> first_error;
};

ReadRuns read_runs(const Request& request) {
  ReadRuns read;
  std::vector<std::string> titles, folders;
  for (const std::string& folder : request.runs) {
    try {
      read.comparison.runs.push_back(compared(folder, read_run(folder)));
      titles.push_back(read.comparison.runs.back().name);
      folders.push_back(folder);
    } catch (const Error& error) {
      log::warn(folder + " is left out: " + error.message());
      read.comparison.left_out.push_back({folder, error.what()});
      if (!read.first_error) read.first_error = error;
    }
  }
  const auto names = report::distinct_names(titles, folders);
  for (size_t i = 0; i < names.size(); ++i) read.comparison.runs[i].name = names[i];
  return read;
}

// ---- the command --------------------------------------------------------------------------------

fs::path data_beside(const fs::path& page) {
  return fs::path(page).replace_extension(".json");
}

// Only the page was named: a file of somebody else must not be lost to its data.
void require_place_of_data(const fs::path& page) {
  const fs::path data = data_beside(page);
  std::error_code ignored;
  if (fs::exists(data, ignored) &&
      (!fs::is_regular_file(data, ignored) || !report::is_comparison_json(data))) {
    throw Error(ExitCode::kUsage,
                "the numbers of " + page.string() + " would replace " + data.string() +
                    ", which is no earlier comparison",
                "give another name to --output, or move that file away");
  }
  require_output_place(data, "--output");
}

void write_page(const fs::path& page, const std::string& html, const std::string& data) {
  write_named_output(page, html);
  if (is_file_output(page)) write_named_output(data_beside(page), data);
}

int compare(const Request& request) {
  require_comparable(request);
  const fs::path page = request.output.empty() ? "comparison.html" : request.output;
  if (page.extension() == ".json") {
    throw Error(ExitCode::kUsage,
                "--output is the page, and " + page.string() + " would be its data",
                "give a name that ends in .html");
  }
  require_output_place(page, "--output");
  if (is_file_output(page) && fs::exists(page.parent_path() / "run.json")) {
    throw Error(ExitCode::kUsage, "--output: " + page.string() + " lies in the folder of a run",
                "name a place outside: the data beside the page could replace a file of the run");
  }
  if (is_file_output(page)) require_place_of_data(page);
  const ReadRuns read = read_runs(request);
  if (read.comparison.runs.empty()) throw *read.first_error;
  require_figure(read.comparison);
  const std::string data = report::comparison_json(read.comparison);
  write_page(page, report::render_comparison(read.comparison), data);
  if (request.json) {
    std::cout << data;
  } else {
    tell_page(page);
  }
  return static_cast<int>(read.first_error ? read.first_error->code() : ExitCode::kOk);
}

int report_one(const Request& request) {
  const fs::path directory = request.runs.front();
  ReadRun run = read_run(directory);
  const auto& content = run.content;
  if (!run.has_metrics) {
    throw Error(ExitCode::kUsage, directory.string() + " has no metrics.jsonl",
                "training writes it; there is nothing to show yet");
  }
  if (request.output.empty()) {
    report::write_html_report(directory / "report.html", content);
  } else {
    require_output_place(request.output, "--output");
    write_named_output(request.output, report::render_html(content));
  }
  if (request.json) {
    report::Comparison comparison;
    comparison.runs.push_back(compared(directory, std::move(run)));
    std::cout << report::comparison_json(comparison);
  } else {
    tell_page(request.output.empty() ? directory / "report.html" : fs::path(request.output));
  }
  return 0;
}

}  // namespace

std::function<int()> declare_report(CLI::App& app) {
  auto request = std::make_shared<Request>();
  app.add_option(
         "RUN", request->runs,
         "run folder; of several, the curves are drawn in one page, and scores against the batch")
      ->required()
      ->type_name("");
  app.add_option("--output", request->output,
                 "the page; default: report.html in the run folder; of several runs "
                 "comparison.html here, with comparison.json beside it")
      ->type_name("FILE");
  app.add_flag("--json", request->json, "print the numbers as one JSON object");
  return [request] { return request->runs.size() > 1 ? compare(*request) : report_one(*request); };
}

}  // namespace stretto::cli
