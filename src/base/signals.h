#pragma once

#include <array>
#include <csignal>

namespace stretto {

/// While it lives, SIGINT, SIGTERM, SIGUSR1 and SIGHUP (the terminal was closed) only set a flag,
/// so that the loop can finish its step, save and leave. A second SIGINT ends the process at once
/// with exit code 130. A SIGHUP that was ignored before (`nohup`) stays ignored.
///
///     StopSignals stop;
///     while (!stop.requested()) train_step();
///
/// One object at a time; destruction restores the handlers that were there before, unless a signal
/// came: a process that was asked to end is on its way out, and must not die of the same signal
/// again (from its launcher, or from a scheduler that tells each process) before it has said how it
/// ended. With `kKeep` the handlers stay in any case: the process has done all its work, and must
/// not die of a signal that comes now before it has said so.
/// Interrupted system calls restart (SA_RESTART).
class StopSignals {
 public:
  /// What becomes of the handlers when the object ends and no signal has come.
  enum class AtEnd { kRestore, kKeep };

  explicit StopSignals(AtEnd at_end = AtEnd::kRestore);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  bool requested() const { return which() != 0; }
  /// The first signal that came, 0 when none did.
  int which() const;

 private:
  AtEnd at_end_;
  std::array<struct sigaction, 4> previous_{};
};

/// While it lives, signals that come to this thread wait. What is begun meanwhile, a thread or a
/// child, begins with them blocked.
class SignalsBlocked {
 public:
  SignalsBlocked();
  ~SignalsBlocked();  ///< leaves errno as it is
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

/// Whether this process ignores SIGHUP, as `nohup` has it.
bool ignores_hangup();
void ignore_hangup();

/// From here on writing to a pipe that no process reads any more is an error (EPIPE) and not the
/// end of this process: for commands that have more to do than to print.
void ignore_broken_pipes();

}  // namespace stretto
