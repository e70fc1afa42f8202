#include "engine/infer_progress.h"

#include <unistd.h>

#include <cmath>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "report/terminal.h"
#include "report/utf8.h"

namespace stretto::engine {
namespace {

constexpr double kDrawEvery = 0.1, kPlainEvery = 60;  // seconds
constexpr int kUncut = 1000;                          // columns: a line in a file is never cut

std::string rate_text(double per_second) {
  return fixed(per_second, per_second < 9.95 ? 1 : 0) + " lines/s";
}

}  // namespace

std::string format_infer_progress(const InferState& state, int columns) {
  if (columns <= 0) return "";
  const auto lines = static_cast<double>(state.lines), total = static_cast<double>(state.total);
  std::string done = counted(state.lines, "line");
  if (state.total > 0) {
    done = with_thousands(state.lines) + " of " + counted(state.total, "line") + " " +
           fixed(std::floor(100 * lines / total), 0) + "%";
  }
  const bool has_rate = state.lines > 0 && state.seconds > 0;
  const double rate = has_rate ? lines / state.seconds : 0;
  const std::string rate_field = has_rate ? " · " + rate_text(rate) : "";
  const std::string eta = has_rate && state.total > state.lines
                              ? " · ETA " + human_duration((total - lines) / rate)
                              : "";
  for (const auto& line : {done + rate_field + eta, done + eta, done}) {
    if (report::count_code_points(line) <= static_cast<size_t>(columns)) return line;
  }
  return report::ellipsis(done, static_cast<size_t>(columns));
}

InferProgress::InferProgress(Kind kind, int64_t total)
    : kind_(kind), state_{.total = total}, shown_(start_) {
  if (kind_ == Kind::kLive) log::set_screen_hooks({&clear_for_log, &redraw_after_log, this});
}

InferProgress::~InferProgress() {
  if (kind_ != Kind::kLive) return;
  log::set_screen_hooks({});
  draw();
  report::write_stderr("\n");
}

void InferProgress::update(int64_t lines) {
  state_.lines = lines;
  const double since = seconds_since(shown_);
  if (kind_ == Kind::kLive && (!on_screen_ || since >= kDrawEvery)) draw();
  if (kind_ == Kind::kPlain && since >= kPlainEvery) {
    state_.seconds = seconds_since(start_);
    shown_ = Clock::now();
    log::info(format_infer_progress(state_, kUncut));
  }
}

void InferProgress::draw() {
  state_.seconds = seconds_since(start_);
  const std::string line = format_infer_progress(state_, report::terminal_columns());
  report::write_stderr(std::string(report::kEraseLine) +
                       (report::colour_wanted() ? report::decorated(line) : line));
  on_screen_ = true;
  shown_ = Clock::now();
}

void InferProgress::clear_for_log(void* context) {
  auto* self = static_cast<InferProgress*>(context);
  if (self->on_screen_) report::write_stderr(report::kEraseLine);
  self->on_screen_ = false;
}

void InferProgress::redraw_after_log(void* context) {
  static_cast<InferProgress*>(context)->draw();
}

InferProgress::Kind infer_progress_kind(bool from_file, bool stats) {
  using Kind = InferProgress::Kind;
  if (!from_file) return Kind::kNone;
  // On one screen with the translations it would stand between them.
  if (report::stderr_is_live_terminal() && ::isatty(STDOUT_FILENO) == 0) return Kind::kLive;
  return stats ? Kind::kPlain : Kind::kNone;
}

}  // namespace stretto::engine
