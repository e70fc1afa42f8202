#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "search/places.h"
#include "search/trial_process.h"

namespace stretto::search {

/// A trial's process that has ended.
struct EndedJob {
  Job job;
  int code = 0;          ///< 128 + signal when it was killed
  std::string why = {};  ///< what its output says went wrong; empty = nothing
};

/// Whether an exit code says that this machine cannot run trials: no disk, no program. That is no
/// fault of the trial, and every other one would meet it.
bool is_fault_of_machine(int code);

/// How the processes of a pool are started.
struct TrialPoolSetup {
  TrialCommand command;
  RemoteStart remote;
  std::chrono::milliseconds tick{50};  ///< between two looks at processes that are asked to leave
};

/// The processes of a search: jobs that wait for a place, those that train, and the hosts that have
/// room for them.
///
/// A host that cannot run trials is reported, and its jobs wait for a place again; that does not
/// count as a failure of the trial. Pipes to other hosts may break: the program calls
/// ignore_broken_pipes() first.
class TrialPool {
 public:
  TrialPool(Places places, TrialPoolSetup setup);

  /// Trials at a time, when no host fails.
  size_t capacity() const { return places_.capacity(); }
  size_t num_hosts() const { return places_.hosts().size(); }

  /// Takes a job, behind jobs that were begun before it: results may be taken in that order.
  /// @param begun  jobs in the order in which they were begun
  void add(const Job& job, const std::vector<Job>& begun);
  /// Makes processes of the jobs that have a place, the oldest first.
  /// @param run_of  what a job's process is asked to do on this host; the pool adds its GPUs
  void place(const std::function<TrialRun(const Job& job, const Host& host)>& run_of);
  /// Starts processes and hears of those that have ended. Throws Error(kPeerLost) when no host is
  /// left, and what TrialProcess::poll() throws.
  /// @param begun  as for add()
  std::vector<EndedJob> poll(const std::vector<Job>& begun);
  /// Asks all of them to save and leave, and waits until they have, five minutes at the most.
  void stop();

 private:
  void move_elsewhere(const TrialProcess& process, int code, const std::vector<Job>& begun);

  Places places_;
  TrialPoolSetup setup_;
  std::vector<Job> pending_;  // that wait for a place, the oldest first
  std::vector<std::unique_ptr<TrialProcess>> processes_;
};

}  // namespace stretto::search
