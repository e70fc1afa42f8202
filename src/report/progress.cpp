#include "report/progress.h"

#include <chrono>
#include <mutex>

#include "base/log.h"
#include "report/terminal.h"

namespace stretto::report {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPlainColumns = 1000;  // a line in a file is never cut
constexpr double kDrawSeconds = 0.1;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

/// The log calls `clear` and `redraw` from any thread, with its own lock held. So nothing here logs
/// while `mutex` is held, and nothing is drawn between the two calls.
struct Progress::Impl {
  const bool live = live_lines_wanted();
  const bool colour = colour_wanted();
  const double plain_seconds;
  std::mutex mutex;
  ProgressState state;
  std::string activity;
  bool has_state = false, on_screen = false, log_is_writing = false, finished = false;
  bool shown_plain = false;  ///< the newest state is already in a plain line
  Clock::time_point last_shown{};

  explicit Impl(double seconds) : plain_seconds(seconds) {}

  void draw() {
    if (!has_state || log_is_writing || finished) return;
    const std::string line = format_progress(state, terminal_columns(), activity);
    // One write for all, or another program's output could come between erasing and drawing.
    write_stderr(std::string(kEraseLine) + (colour ? decorated(line) : line));
    on_screen = true;
    last_shown = Clock::now();
  }

  static void clear_for_log(void* context) {
    auto* impl = static_cast<Impl*>(context);
    const std::lock_guard lock(impl->mutex);
    impl->log_is_writing = true;
    if (impl->on_screen) write_stderr(kEraseLine);
    impl->on_screen = false;
  }

  static void redraw_after_log(void* context) {
    auto* impl = static_cast<Impl*>(context);
    const std::lock_guard lock(impl->mutex);
    impl->log_is_writing = false;
    impl->draw();
  }

  /// The plain line that is due now; empty when none is.
  std::string plain_line_if_due(bool last) {
    const auto now = Clock::now();
    const bool due = last_shown == Clock::time_point{} ||
                     seconds_between(last_shown, now) >= plain_seconds || last;
    if (!has_state || shown_plain || !due) return "";
    last_shown = now;
    shown_plain = true;
    return format_progress(state, kPlainColumns);
  }
};

Progress::Progress(double plain_seconds) : impl_(std::make_unique<Impl>(plain_seconds)) {
  if (impl_->live) {
    log::set_screen_hooks({&Impl::clear_for_log, &Impl::redraw_after_log, impl_.get()});
  }
}

Progress::~Progress() {
  finish();
}

void Progress::update(const ProgressState& state) {
  std::string plain;
  {
    const std::lock_guard lock(impl_->mutex);
    if (impl_->finished) return;
    impl_->state = state;
    impl_->has_state = true;
    impl_->shown_plain = false;
    if (!impl_->live) {
      plain = impl_->plain_line_if_due(false);
    } else if (seconds_between(impl_->last_shown, Clock::now()) >= kDrawSeconds) {
      impl_->draw();
    }
  }
  if (!plain.empty()) log::info(plain);
}

void Progress::set_activity(const std::string& activity) {
  const std::lock_guard lock(impl_->mutex);
  impl_->activity = activity;
  if (impl_->live) impl_->draw();
}

void Progress::finish() {
  if (impl_->live) log::set_screen_hooks({});  // before the lock: the log may be inside a hook
  std::string plain;
  {
    const std::lock_guard lock(impl_->mutex);
    if (impl_->finished) return;
    impl_->activity.clear();
    if (impl_->live) {
      impl_->log_is_writing = false;
      impl_->draw();
      if (impl_->on_screen) write_stderr("\n");
    } else {
      plain = impl_->plain_line_if_due(true);
    }
    impl_->finished = true;
  }
  if (!plain.empty()) log::info(plain);
}

}  // namespace stretto::report
