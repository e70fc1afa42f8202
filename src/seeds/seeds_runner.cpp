#include "seeds/seeds_runner.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/child_process.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/text.h"
#include "seeds/seed_list.h"
#include "seeds/summary.h"

namespace stretto::seeds {
namespace {

namespace fs = std::filesystem;

constexpr int kInterrupted = static_cast<int>(ExitCode::kInterrupted);
constexpr int kEndedBySignal = 128 + ChildProcess::kEnd;
constexpr int kDiverged = static_cast<int>(ExitCode::kNumeric);
constexpr double kPatienceSeconds = 120;  // for a process of a killed command that saves

[[noreturn]] void refuse_place(const fs::path& directory, const std::string& what) {
  throw Error(ExitCode::kUsage, directory.string() + " " + what,
              "give another folder with --run: seed N is trained in its folder seed_N");
}

void require_place(const fs::path& directory) {
  std::error_code ignored;
  if (fs::exists(directory, ignored) && !fs::is_directory(directory, ignored)) {
    refuse_place(directory, "is not a folder");
  }
  for (const char* name : {"run.json", "config.toml", "checkpoints"}) {
    if (fs::exists(directory / name, ignored)) refuse_place(directory, "holds a single run");
  }
  if (fs::exists(directory / "journal", ignored)) refuse_place(directory, "holds a search");
  make_directories(directory);
}

FileLock lock_of(const fs::path& directory) {
  require_place(directory);
  return FileLock::try_now(directory / ".lock", "stretto train --seeds");
}

std::string seed_name(const SeedRun& run) {
  return "seed " + std::to_string(run.seed);
}

// What mean and deviation are made of is what the training came to.
void require_same_scores(const SeedRun& run, const fs::path& directory, const BestBy& by) {
  const auto difference =
      run.scores ? difference_between(*run.scores, read_run_scores(directory, by)) : "";
  if (difference.empty()) return;
  throw Error(ExitCode::kBadData,
              (directory / "metrics.jsonl").string() +
                  ": is not what it was when this seed finished: " + difference,
              "put the file back from a copy. Without one, remove " + directory.string() +
                  " to train the seed again; or, where the run was trained on by itself, remove "
                  "seeds.json, and its scores of now count");
}

SeedState state_after(int code) {
  if (code == 0) return SeedState::kFinished;
  return code == kInterrupted ? SeedState::kInterrupted : SeedState::kFailed;
}

}  // namespace

SeedsRunner::SeedsRunner(SeedsSetup setup)
    : setup_(std::move(setup)),
      lock_(lock_of(setup_.directory)),
      data_(setup_.directory, "the seeds in " + setup_.directory.string() + " were begun",
            setup_.accept_data) {
  for (const auto& run : setup_.runs) {
    runs_.push_back({.seed = run.seed,
                     .state = SeedState::kWaiting,
                     .fingerprint = run.fingerprint,
                     .exit_code = {}});
  }
  adopt_earlier_runs();
  log::open_file(setup_.directory / "log.txt");
  require_same_data();
}

fs::path SeedsRunner::directory_of(const SeedRun& run) const {
  return seed_directory(setup_.directory, run.seed);
}

void SeedsRunner::adopt_earlier_runs() {
  std::vector<int64_t> others;
  for (const auto& earlier : read_seeds_json(setup_.directory)) {
    const auto own = std::find_if(runs_.begin(), runs_.end(),
                                  [&](const auto& run) { return run.seed == earlier.seed; });
    if (own == runs_.end()) {
      others.push_back(earlier.seed);
    } else if (earlier.fingerprint == own->fingerprint && earlier.state == SeedState::kFinished &&
               fs::exists(directory_of(*own) / "run.json")) {
      require_same_scores(earlier, directory_of(earlier), setup_.best_by);
      *own = earlier;
    }
  }
  if (others.empty()) return;
  throw Error(
      ExitCode::kUsage,
      setup_.directory.string() + " holds seeds that are not asked for: " + seeds_text(others),
      "name them too, or give another folder with --run");
}

std::vector<RunScores> SeedsRunner::scores() const {
  std::vector<RunScores> all;
  for (const auto& run : runs_) {
    all.push_back(run.scores ? *run.scores : read_run_scores(directory_of(run), setup_.best_by));
  }
  return all;
}

void SeedsRunner::require_same_data() {
  data_.require(setup_.data_files, setup_.digests);
}

nlohmann::ordered_json SeedsRunner::json() const {
  return seeds_json(runs_, scores(), setup_.best_by, data_.accepted());
}

void SeedsRunner::note(SeedRun& run, SeedState state, std::optional<int> exit_code) {
  run.state = state;
  run.exit_code = exit_code;
  run.scores.reset();
  if (state == SeedState::kFinished) {
    run.scores = read_run_scores(directory_of(run), setup_.best_by);
  }
  write_file_atomic(seeds_path(setup_.directory), json().dump(2) + "\n");
}

void SeedsRunner::wait_for_earlier_process(const SeedRun& run, const StopSignals& signals) const {
  const fs::path lock = directory_of(run) / ".lock";
  if (!FileLock::is_held(lock)) return;
  log::info(seed_name(run) + ": another process still saves this run");
  const auto began = std::chrono::steady_clock::now();
  while (FileLock::is_held(lock) && seconds_since(began) < kPatienceSeconds &&
         !signals.requested()) {
    std::this_thread::sleep_for(setup_.tick);
  }
}

int SeedsRunner::train(SeedRun& run, const StopSignals& signals) {
  wait_for_earlier_process(run, signals);
  if (signals.requested()) return kInterrupted;
  require_same_data();
  log::info(seed_name(run) + ": training in " + directory_of(run).string());
  note(run, SeedState::kTraining, {});
  ChildProcess process(setup_.command(run.seed, directory_of(run)));
  bool asked_to_stop = false;
  for (;;) {
    if (auto code = process.poll()) {
      // It had no handler yet, and nothing to save.
      if (asked_to_stop && *code == kEndedBySignal) code = kInterrupted;
      note(run, state_after(*code), *code);
      return *code;
    }
    if (signals.requested() && !std::exchange(asked_to_stop, true)) {
      process.send(ChildProcess::kEnd);
    }
    std::this_thread::sleep_for(setup_.tick);
  }
}

int SeedsRunner::run() {
  const StopSignals signals;
  int outcome = 0;
  for (auto& run : runs_) {
    if (run.state == SeedState::kFinished) {
      log::info(seed_name(run) + ": finished already");
      continue;
    }
    const int code = signals.requested() ? kInterrupted : train(run, signals);
    if (code == kInterrupted) {
      log::info("stopped; the same command goes on from there");
      return code;
    }
    if (code == 0) continue;
    log::error(seed_name(run) + " failed with exit code " + std::to_string(code) +
               "; the same command tries it again");
    if (code != kDiverged) return code;
    outcome = code;
  }
  return outcome;
}

std::string SeedsRunner::table() const {
  const auto all = scores();
  std::string text;
  for (size_t i = 0; i < runs_.size(); ++i) {
    const auto& best = all[i].best;
    text += seed_name(runs_[i]) + ": " + name_of(runs_[i].state);
    if (best) {
      const auto style = setup_.display.style(setup_.best_by.name);
      text += ", best " + style.label + " " +
              fixed(best->number(setup_.best_by.name).value_or(0), style.decimals) + " at step " +
              with_thousands(best->step);
    }
    text += "\n";
  }
  for (const auto& line : summary_lines(summarise(finished_scores(runs_, all)), setup_.display)) {
    text += line + "\n";
  }
  return text;
}

}  // namespace stretto::seeds
