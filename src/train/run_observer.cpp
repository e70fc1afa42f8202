#include "train/run_observer.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "report/report_data.h"

namespace stretto::train {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

namespace {

constexpr double kMostOfTime = 0.02;  // that drawing may take of training

}  // namespace

RunObserver::RunObserver(const fs::path& run_directory, report::ReportOptions options,
                         RunDescription description, const report::ResumePoint& resume)
    : run_directory_(run_directory),
      options_(std::move(options)),
      metrics_(run_directory / "metrics.jsonl", resume),
      last_html_(Clock::now()) {
  content_.title = description.title;
  content_.config_toml = description.config_toml;
  content_.machine = description.machine;
  content_.facts = description.facts;
  content_.max_steps = description.max_steps;
  content_.display = description.display;
  if (resume.step > 0) take_over_samples();
  write_data();
  if (options_.tensorboard) {
    picture("TensorBoard events", [&] {
      tensorboard_ =
          std::make_unique<report::TensorBoardWriter>(run_directory_ / "tensorboard", resume.step);
      tensorboard_->text("config", resume.step, "```toml\n" + description.config_toml + "\n```");
    });
  }
}

RunObserver::~RunObserver() = default;

void RunObserver::picture(const char* what, const std::function<void()>& draw) {
  try {
    draw();
  } catch (const std::exception& error) {
    if (!picture_failed_) {
      log::warn(std::string(what) + " could not be written, training goes on: " + error.what());
    }
    picture_failed_ = true;
  }
}

void RunObserver::event(const report::MetricsEvent& event) {
  metrics_.write(event);
  if (tensorboard_) {
    picture("TensorBoard events", [&] {
      const auto scalar = [&](const std::string& name, const std::optional<double>& value) {
        if (value) tensorboard_->scalar(event.event + "/" + name, event.step, *value);
      };
      // As of the curves of the page: a warning adds a point to that of the loss scale alone.
      if (event.unscheduled.value_or(false)) {
        scalar("loss_scale", event.loss_scale);
        return tensorboard_->flush();
      }
      const auto scalars = [&](const report::NamedNumbers& numbers) {
        for (const auto& number : numbers) {
          if (!number.is_count()) scalar(number.name, number.as_double());
        }
      };
      scalar("loss", event.loss);
      scalars(event.measures);
      scalar("lr", event.lr);
      scalar("grad_norm", event.grad_norm);
      scalars(event.counts);  // the rate
      scalars(event.scores);
      scalar("loss_scale", event.loss_scale);
      scalar("data_wait_seconds", event.data_wait_seconds);
      scalar("noise_scale", event.noise_scale);
      scalar("sparsity", event.sparsity);
      scalar("comm_seconds", event.comm_seconds);
      scalar("comm_wait_seconds", event.comm_wait_seconds);
      tensorboard_->flush();
    });
  }
  const std::chrono::duration<double> since = Clock::now() - last_html_;
  const double wait = std::max(options_.html_seconds, html_cost_.count() / kMostOfTime);
  if (options_.html && since.count() >= wait) {
    write_html("running", std::max(2, static_cast<int>(wait)));
  }
}

// The next validation may be far away. Machine and facts are this process's own.
void RunObserver::take_over_samples() {
  const fs::path path = run_directory_ / report::kReportDataFile;
  std::error_code unknown;
  if (!fs::exists(path, unknown)) return;
  try {
    report::ReportContent before;
    report::read_report_data(path, before);
    content_.samples = std::move(before.samples);
    content_.samples_step = before.samples_step;
  } catch (const Error& error) {
    log::warn("the report goes on without the samples so far: " + error.message());
  }
}

void RunObserver::samples(int64_t step, const std::vector<report::Sample>& samples) {
  content_.samples_step = step;
  content_.samples = report::trimmed(samples);
  write_data();
}

void RunObserver::write_data() {
  picture(report::kReportDataFile,
          [&] { report::write_report_data(run_directory_ / report::kReportDataFile, content_); });
}

void RunObserver::finish(const std::string& status) {
  progress_.finish();
  if (options_.html) write_html(status, 0);
}

void RunObserver::write_html(const std::string& status, int refresh_seconds) {
  const auto begin = Clock::now();
  picture("report.html", [&] {
    std::vector<report::BrokenLine> broken;  // were told when the file was opened
    report::ReportContent content = content_;
    content.status = status;
    content.refresh_seconds = refresh_seconds;
    content.events = report::read_metrics(run_directory_ / "metrics.jsonl", broken);
    report::write_html_report(run_directory_ / "report.html", content);
  });
  last_html_ = Clock::now();
  html_cost_ = last_html_ - begin;
}

}  // namespace stretto::train
