#include "report/line_progress.h"

#include <unistd.h>

#include <cmath>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "report/terminal.h"
#include "report/utf8.h"

namespace stretto::report {
namespace {

constexpr double kDrawEvery = 0.1, kPlainEvery = 60;  // seconds
constexpr int kUncut = 1000;                          // columns: a line in a file is never cut

std::string rate_text(double per_second) {
  return fixed(per_second, per_second < 9.95 ? 1 : 0) + " lines/s";
}

}  // namespace

std::string format_line_progress(const LineState& state, int columns) {
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
    if (count_code_points(line) <= static_cast<size_t>(columns)) return line;
  }
  return ellipsis(done, static_cast<size_t>(columns));
}

LineProgress::LineProgress(Kind kind, int64_t total)
    : kind_(kind), state_{.total = total}, shown_(start_) {
  if (kind_ == Kind::kLive) log::set_screen_hooks({&clear_for_log, &redraw_after_log, this});
}

LineProgress::~LineProgress() {
  if (kind_ != Kind::kLive) return;
  log::set_screen_hooks({});
  draw();
  write_stderr("\n");
}

void LineProgress::update(int64_t lines) {
  state_.lines = lines;
  const double since = seconds_since(shown_);
  if (kind_ == Kind::kLive && (!on_screen_ || since >= kDrawEvery)) draw();
  if (kind_ == Kind::kPlain && since >= kPlainEvery) {
    state_.seconds = seconds_since(start_);
    shown_ = Clock::now();
    log::info(format_line_progress(state_, kUncut));
  }
}

void LineProgress::draw() {
  state_.seconds = seconds_since(start_);
  const std::string line = format_line_progress(state_, terminal_columns());
  write_stderr(std::string(kEraseLine) + (colour_wanted() ? decorated(line) : line));
  on_screen_ = true;
  shown_ = Clock::now();
}

void LineProgress::clear_for_log(void* context) {
  auto* self = static_cast<LineProgress*>(context);
  if (self->on_screen_) write_stderr(kEraseLine);
  self->on_screen_ = false;
}

void LineProgress::redraw_after_log(void* context) {
  static_cast<LineProgress*>(context)->draw();
}

LineProgress::Kind line_progress_kind(bool from_file, bool stats) {
  using Kind = LineProgress::Kind;
  if (!from_file) return Kind::kNone;
  // On one screen with the output it would stand between its lines.
  if (live_lines_wanted() && ::isatty(STDOUT_FILENO) == 0) return Kind::kLive;
  return stats ? Kind::kPlain : Kind::kNone;
}

}  // namespace stretto::report
