#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace stretto::report {

/// How far a command has come that works on a text line by line.
struct LineState {
  int64_t lines = 0;
  int64_t total = -1;  ///< lines of the input; negative = unknown
  double seconds = 0;  ///< since the first line was read
};

/// "1,024 of 20,000 lines 5% · 120 lines/s · ETA 2m 38s"; never wider than `columns`: what does not
/// fit is left out, the rate first.
std::string format_line_progress(const LineState& state, int columns);

/// Says on stderr how far the work on a file is: a live line on a terminal, or a plain line a
/// minute, or nothing. While a live line is on the screen this is the log's screen hook.
class LineProgress {
 public:
  enum class Kind : uint8_t { kNone, kLive, kPlain };

  /// @param total  lines of the input, negative = unknown
  LineProgress(Kind kind, int64_t total);
  ~LineProgress();  ///< leaves the cursor on a fresh line
  LineProgress(const LineProgress&) = delete;
  LineProgress& operator=(const LineProgress&) = delete;

  /// Cheap enough for every step of a search: the screen is drawn at most ten times a second.
  void update(int64_t lines);

 private:
  using Clock = std::chrono::steady_clock;
  void draw();
  static void clear_for_log(void* context);
  static void redraw_after_log(void* context);

  const Kind kind_;
  const Clock::time_point start_ = Clock::now();
  LineState state_;
  Clock::time_point shown_;
  bool on_screen_ = false;
};

/// Which kind fits: live where stderr is a terminal and the output goes elsewhere, plain with
/// `stats` where it is not; none for input that comes as somebody writes it.
///
/// @param from_file  whether all input is regular files
LineProgress::Kind line_progress_kind(bool from_file, bool stats);

}  // namespace stretto::report
