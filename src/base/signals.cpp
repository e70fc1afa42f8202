#include "base/signals.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <stdexcept>

#include "base/error.h"

namespace stretto {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGUSR1, SIGHUP};

// A handler has no argument of its own, so what it writes must be reachable from everywhere.
std::atomic<bool> installed = false;
std::atomic<int> first_signal = 0;
std::atomic<int> num_interrupts = 0;
static_assert(std::atomic<int>::is_always_lock_free, "signal handlers may not take locks");

void remember(int signal) {
  const int errno_before = errno;
  int none = 0;
  first_signal.compare_exchange_strong(none, signal);
  if (signal == SIGINT && num_interrupts.fetch_add(1) > 0) {
    ::_exit(static_cast<int>(ExitCode::kKilled));
  }
  errno = errno_before;
}

}  // namespace

StopSignals::StopSignals(AtEnd at_end) : at_end_(at_end) {
  if (installed.exchange(true)) throw std::logic_error("[signals] one StopSignals at a time");
  first_signal = 0;
  num_interrupts = 0;
  struct sigaction action {};
  action.sa_handler = &remember;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], nullptr, &previous_[i]);
    const bool nohup = kSignals[i] == SIGHUP && previous_[i].sa_handler == SIG_IGN;
    if (!nohup) ::sigaction(kSignals[i], &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  installed = false;
  if (requested() || at_end_ == AtEnd::kKeep) return;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &previous_[i], nullptr);
  }
}

int StopSignals::which() const {
  return first_signal.load(std::memory_order_relaxed);
}

SignalsBlocked::SignalsBlocked() {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before_);
}

SignalsBlocked::~SignalsBlocked() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);  // returns its errors
}

bool ignores_hangup() {
  struct sigaction now {};
  return ::sigaction(SIGHUP, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

void ignore_hangup() {
  ::signal(SIGHUP, SIG_IGN);
}

void ignore_broken_pipes() {
  ::signal(SIGPIPE, SIG_IGN);
}

}  // namespace stretto
