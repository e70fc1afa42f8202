#pragma once

#include <array>
#include <csignal>

namespace stretto {

/// While it lives, SIGINT, SIGTERM and SIGUSR1 only set a flag, so that the loop can finish its
/// step, save and leave. A second SIGINT ends the process at once with exit code 130.
///
///     StopSignals stop;
///     while (!stop.requested()) train_step();
///
/// One object at a time; destruction restores the handlers that were there before.
/// Interrupted system calls restart (SA_RESTART).
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  bool requested() const { return which() != 0; }
  /// The first signal that came, 0 when none did.
  int which() const;

 private:
  std::array<struct sigaction, 3> previous_{};
};

}  // namespace stretto
