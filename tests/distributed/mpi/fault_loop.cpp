// What `stretto train` is to the launcher and the heartbeat, without training: processes that add
// numbers over and over, for tests that kill and stop them.
//
//   fault_loop [--launch N [--restarts K]] [--rounds R] [--milliseconds M] [--timeout S] [--note
//   FILE]
//              [--fail RANK CODE] [--once FILE] [--hang RANK SECONDS] [--stall S] [--stray RANK]
//
// A round ends with --milliseconds of work that looks up now and then, as training does. Each rank
// appends "rank pid" to the note once the group stands. --fail makes one rank throw in
// round 5, with
// --once only while FILE does not exist. --hang makes one rank sleep in round 5 where no collective
// is, --stray makes one wait in another collective than all others. SIGTERM, SIGINT and SIGUSR1
// end all ranks with 75.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "base/signals.h"
#include "distributed/failure.h"
#include "distributed/make_group.h"
#include "distributed/rank_report.h"
#include "distributed/watch/peer_watch.h"
#include "launcher/local_job.h"

namespace stretto::distributed {
namespace {

struct Settings {
  int launch = 0, restarts = 0, rounds = 20, milliseconds = 5;
  double timeout = 60, stall = 1800, hanging_seconds = 0;
  std::string note, once;
  int failing_rank = -1, failing_code = 70, hanging_rank = -1, stray_rank = -1;
};

Settings parse(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto next = [&] { return std::string(++i < argc ? argv[i] : ""); };
    if (word == "--launch") settings.launch = std::stoi(next());
    if (word == "--restarts") settings.restarts = std::stoi(next());
    if (word == "--rounds") settings.rounds = std::stoi(next());
    if (word == "--milliseconds") settings.milliseconds = std::stoi(next());
    if (word == "--timeout") settings.timeout = std::stod(next());
    if (word == "--stall") settings.stall = std::stod(next());
    if (word == "--stray") settings.stray_rank = std::stoi(next());
    if (word == "--hang") {
      settings.hanging_rank = std::stoi(next());
      settings.hanging_seconds = std::stod(next());
    }
    if (word == "--note") settings.note = next();
    if (word == "--once") settings.once = next();
    if (word == "--fail") {
      settings.failing_rank = std::stoi(next());
      settings.failing_code = std::stoi(next());
    }
  }
  return settings;
}

int start_job(const Settings& settings, int argc, char** argv) {
  launcher::LocalJob job{.command = {std::filesystem::read_symlink("/proc/self/exe").string()},
                         .processes = settings.launch,
                         .restarts = settings.restarts};
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--launch" || word == "--restarts") {
      ++i;
    } else {
      job.command.push_back(word);
    }
  }
  return launcher::run_local_job(job);
}

void fail_if_told(const Settings& settings, int rank, int round) {
  if (rank != settings.failing_rank || round != 5) return;
  if (!settings.once.empty()) {
    if (std::filesystem::exists(settings.once)) return;
    std::ofstream(settings.once) << "failed once\n";
  }
  if (settings.failing_code == 9) ::kill(::getpid(), SIGKILL);
  throw Error(static_cast<ExitCode>(settings.failing_code), "told to fail in round 5",
              "do not tell it");
}

// An operation that no other one can be taken for.
void exchange_alone(const ProcessGroup& group) {
  const auto size = static_cast<size_t>(group.size());
  std::vector<float> out(size), in(size);
  std::vector<int64_t> begins(size + 1);
  std::iota(begins.begin(), begins.end(), 0);
  group.exchange(buffer(std::span(out)), buffer(std::span(in)), begins);
}

void hang_if_told(const Settings& settings, const ProcessGroup& group, int round) {
  if (round != 5) return;
  if (group.rank() == settings.stray_rank) exchange_alone(group);
  if (group.rank() != settings.hanging_rank) return;
  std::this_thread::sleep_for(std::chrono::duration<double>(settings.hanging_seconds));
}

void compute(const ProcessGroup& group, int milliseconds) {
  const auto end = Clock::now() + std::chrono::milliseconds(milliseconds);
  do {
    group.check_peers();
    std::this_thread::sleep_for(std::chrono::milliseconds(std::min(milliseconds, 10)));
  } while (Clock::now() < end);
}

int work(const Settings& settings) {
  report_start();
  const StopSignals signals;
  DistOptions options;
  options.timeout_seconds = settings.timeout;
  options.stall_seconds = settings.stall;
  const auto group = make_process_group(options, DeviceKind::kCpu);
  log::set_quiet(!group.is_root());
  const auto all = group.all_gather_bytes(std::to_string(::getpid()));
  if (group.is_root() && !settings.note.empty()) {
    std::ofstream note(settings.note);
    for (size_t rank = 0; rank < all.size(); ++rank) note << rank << " " << all[rank] << "\n";
  }
  watch_stalls(options);
  std::vector<float> data(100'000, 1.0f);
  for (int round = 0; round < settings.rounds; ++round) {
    fail_if_told(settings, group.rank(), round);
    hang_if_told(settings, group, round);
    data[0] = signals.requested() ? 1.0f : 0.0f;
    group.all_reduce(buffer(std::span(data)));
    if (data[0] > 0) {
      log::info("stopped in round " + std::to_string(round));
      return static_cast<int>(ExitCode::kInterrupted);
    }
    data.assign(data.size(), 1.0f);
    if (round % 5 == 0) log::info("round " + std::to_string(round));
    compute(group, settings.milliseconds);
  }
  log::info("all rounds done");
  return 0;
}

}  // namespace
}  // namespace stretto::distributed

int main(int argc, char** argv) {
  using namespace stretto;
  try {
    const auto settings = distributed::parse(argc, argv);
    if (settings.launch > 0) return distributed::start_job(settings, argc, argv);
    const int code = distributed::work(settings);
    distributed::report_end(code, "");
    return distributed::leave(code);
  } catch (const Error& error) {
    distributed::report_failure(distributed::failure_of(error));
    return distributed::leave(static_cast<int>(error.code()), error.message());
  }
}
