#include "search/trial_pool.h"

#include <algorithm>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "search/watched_trial.h"

namespace stretto::search {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kPatience = 300;  // for trials that save before the search leaves
constexpr int kCannotStart = 127;

// Whether the exit code of a trial on another host comes from ssh, a shell, the watcher or a host
// that goes down.
bool says_that_host_failed(int code) {
  constexpr int kNoConnection = 255;
  return code == kNoConnection || code == kHostCannotRun || is_fault_of_machine(code) ||
         code == static_cast<int>(ExitCode::kInterrupted);
}

}  // namespace

bool is_fault_of_machine(int code) {
  return code == static_cast<int>(ExitCode::kIo) || code == kCannotStart;
}

TrialPool::TrialPool(Places places, TrialPoolSetup setup)
    : places_(std::move(places)), setup_(std::move(setup)) {}

void TrialPool::add(const Job& job, const std::vector<Job>& begun) {
  const auto age = [&](const Job& one) { return std::find(begun.begin(), begun.end(), one); };
  const auto later = std::find_if(pending_.begin(), pending_.end(),
                                  [&](const Job& other) { return age(job) < age(other); });
  pending_.insert(later, job);
}

void TrialPool::place(const std::function<TrialRun(const Job& job, const Host& host)>& run_of) {
  while (!pending_.empty()) {
    auto place = places_.take(Clock::now());
    if (!place) return;
    const Job job = pending_.front();
    pending_.erase(pending_.begin());
    const Host& host = places_.host(*place);
    TrialRun run = run_of(job, host);
    run.gpus = place->gpus;
    auto words = setup_.command(run);
    auto process = std::make_unique<TrialProcess>(job, std::move(run), std::move(*place));
    if (host.is_here()) {
      process->set_words(std::move(words));
    } else {
      process->set_remote_words(setup_.remote, host.name, std::move(words));
    }
    processes_.push_back(std::move(process));
  }
}

std::vector<EndedJob> TrialPool::poll(const std::vector<Job>& begun) {
  std::vector<EndedJob> ended;
  for (auto& process : processes_) {
    const auto code = process->poll();
    if (!code) continue;
    if (process->is_remote() && says_that_host_failed(*code)) {
      move_elsewhere(*process, *code, begun);
    } else {
      places_.give_back(process->place());
      ended.push_back({process->job(), *code, *code == 0 ? "" : process->complaint()});
    }
    process.reset();
  }
  std::erase(processes_, nullptr);
  return ended;
}

void TrialPool::move_elsewhere(const TrialProcess& process, int code,
                               const std::vector<Job>& begun) {
  const Job job = process.job();
  const Host& host = places_.host(process.place());
  const bool is_left_out = places_.give_back_failed(process.place(), Clock::now());
  const auto last = process.last_line();
  const std::string what = "host " + host.name + " failed: " +
                           (last.empty() ? "exit code " + std::to_string(code) : last);
  if (!places_.any_left()) {
    throw Error(ExitCode::kPeerLost, "no host is left for trials; the last one was " + what,
                "correct this, and the same command goes on");
  }
  log::warn(what + "; trial " + std::to_string(job.trial) +
            " is tried again, elsewhere if possible" +
            (is_left_out ? "; no further trial is tried on it" : ""));
  add(job, begun);
}

void TrialPool::stop() {
  const auto has_ended = [](const std::unique_ptr<TrialProcess>& process) {
    try {
      return process->poll().has_value();
    } catch (const Error&) {
      return true;  // it never began
    }
  };
  pending_.clear();
  std::erase(processes_, nullptr);  // poll() may have been left halfway
  for (auto& process : processes_) process->stop();
  const auto asked = Clock::now();
  while (!processes_.empty() && seconds_since(asked) < kPatience) {
    std::erase_if(processes_, has_ended);
    if (!processes_.empty()) std::this_thread::sleep_for(setup_.tick);
  }
}

}  // namespace stretto::search
