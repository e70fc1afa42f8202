#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace stretto::report {

/// One of the numbers that a line of progress shows by a label.
struct ProgressNumber {
  std::string label;  ///< "loss", "ppl"
  double value = 0;
};

/// What the progress line shows.
struct ProgressState {
  int64_t step = 0;
  int64_t last_step = 0;  ///< that ends the run, as far as is known: skips move it; 0 = unknown
  int64_t epoch = 0;
  double epoch_fraction = 0;                 ///< 0..1
  std::vector<ProgressNumber> numbers = {};  ///< the loss first
  double lr = 0, grad_norm = 0;
  double rate = 0;                  ///< a second, of what the task counts
  std::string rate_unit = "samples";
  double eta_seconds = -1;  ///< negative = unknown
  int64_t memory_bytes = 0;
};

/// The one live line on a terminal; plain lines, at most every `plain_seconds`, where stderr is not
/// one.
class Progress {
 public:
  explicit Progress(double plain_seconds = 10);
  ~Progress();  ///< leaves the cursor on a fresh line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Cheap enough for every update: the screen is drawn at most ten times a second. Plain lines go
  /// through log::info, so they are in log.txt too.
  void update(const ProgressState& state);
  /// A word about what is going on beside training: "validating", "saving"; empty = training.
  void set_activity(const std::string& activity);
  /// Shows the last state once more and leaves the line; later calls do nothing.
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The text of the line for a given width in columns; never wider. What does not fit is left out,
/// the least important first: epoch fraction, memory, gradient norm, epoch, learning rate, numbers
/// beside the loss, rate, ETA. Nothing is shown for what is unknown (0 memory, negative ETA, …).
std::string format_progress(const ProgressState& state, int columns,
                            const std::string& activity = "");

}  // namespace stretto::report
