#include "runs/checkpointer.h"

#include <torch/version.h>

#include <algorithm>
#include <chrono>
#include <ranges>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "base/version.h"
#include "runs/choose_checkpoint.h"
#include "runs/provenance.h"
#include "runs/stored_masks.h"
#include "runs/unpacked_weights.h"
#include "store/folders.h"

namespace stretto::runs {

using Clock = std::chrono::steady_clock;

namespace {

constexpr int kFailuresBeforeStop = 3;
constexpr std::string_view kUndonePrefix = "undone-";

// Going on is bit-exact only with what wrote the checkpoint.
void tell_other_versions(const store::LoadedCheckpoint& loaded) {
  const auto& provenance = loaded.provenance;
  const auto tell = [&](const char* what, const std::string& then, const std::string& now) {
    if (then.empty() || then == now) return;
    log::info(loaded.directory.string() + " was written with " + what + " " + printable(then) +
              ", this is " + now + ": what follows may differ in the last bits");
  };
  tell("stretto", provenance.stretto, stretto::kVersion);
  tell("libtorch", provenance.libtorch, TORCH_VERSION);
}

}  // namespace

Checkpointer::Checkpointer(std::filesystem::path run_directory, RunIdentity identity,
                           KeepOptions options, SaveOptions save)
    : run_directory_(std::move(run_directory)),
      identity_(std::move(identity)),
      options_(options),
      save_options_(save),
      store_(run_directory_) {}

Checkpointer::~Checkpointer() {
  try {
    collect();
  } catch (const Error& error) {
    log::warn("the last checkpoint could not be saved: " + error.message());
  } catch (const std::exception& error) {
    log::warn(std::string("the last checkpoint could not be saved: ") + error.what());
  }
}

std::optional<TrainState> Checkpointer::restore(optim::Arena& arena, optim::Optimizer& optimizer) {
  return restore(arena, optimizer.state());
}

std::optional<TrainState> Checkpointer::restore(optim::Arena& arena,
                                                const std::vector<optim::StateTensor>& state,
                                                compress::PackedMasks* masks) {
  wait();  // its folder would be taken for one that a killed process left
  store_.remove_stale();
  auto loaded = store_.load_newest(/*quarantine=*/true);
  if (!loaded) return std::nullopt;
  const std::string where = loaded->directory.string();
  require_own_run(*loaded);
  require_same_tokenizer(*loaded, identity_.tokenizer, run_directory_ / "tokenizer");
  tell_other_versions(*loaded);
  require_unpacked(loaded->file("model"), where, "training does not go on from them",
                   "begin a run with them: train.init_from = \"" + run_directory_.string() + "\"");
  load_weights(loaded->file("model"), where + "/model.safetensors", arena);
  load_optimizer_state(loaded->file("optimizer"), where + "/optimizer.safetensors", arena, state);
  if (masks != nullptr) *masks = stored_masks(*loaded);
  return TrainState::from_json(loaded->state_json, where + "/state.json");
}

std::vector<int64_t> Checkpointer::steps() {
  wait();
  return store_.steps();
}

// Newest first: a kill on the way leaves a run that goes on from one of those that are left.
void Checkpointer::undo_after(int64_t step) {
  for (const int64_t newer : steps() | std::views::reverse) {
    if (newer <= step) break;
    const auto from = store_.path_of(newer);
    const auto to = store::aside(from.parent_path(), kUndonePrefix, from.filename().string());
    store::rename_folder(from, to);
    store::sync_folder(from.parent_path());
    log::warn("checkpoint " + from.filename().string() + " is given up and kept as " + to.string());
  }
}

void Checkpointer::save(const optim::Arena& arena, optim::Optimizer& optimizer,
                        const TrainState& train_state) {
  save(arena, optimizer.state(), train_state);
}

void Checkpointer::save(const optim::Arena& arena, const std::vector<optim::StateTensor>& state,
                        const TrainState& train_state,
                        std::shared_ptr<const compress::PackedMasks> masks) {
  const auto start = Clock::now();
  collect();
  const bool background = save_options_.in_background;
  snapshot_.take(arena, state, background ? Snapshot::Bytes::kOwn : Snapshot::Bytes::kBorrowed,
                 std::move(masks));
  ++stats_.saves;
  writing_ = std::async(background ? std::launch::async : std::launch::deferred,
                        [this, train_state] { return write(train_state); });
  if (!background) collect();
  const double seconds = seconds_since(start);
  stats_.stall_seconds += seconds;
  stats_.longest_stall_ms = std::max(stats_.longest_stall_ms, 1000 * seconds);
}

Checkpointer::Written Checkpointer::write(const TrainState& state) {
  const auto start = Clock::now();
  Written written{.step = state.step};
  try {
    store_.save({.step = state.step,
                 .run_id = identity_.run_id,
                 .config_hash = identity_.config_hash,
                 .provenance = provenance_of(identity_),
                 .files = snapshot_.files(),
                 .state_json = state.to_json()});
  } catch (const Error& error) {
    if (error.code() != ExitCode::kIo) throw;
    written.failure = error;
  }
  if (!written.failure) {
    try {
      store_.prune(steps_to_keep(store_.steps(), state, options_));
    } catch (const Error& error) {
      written.prune_failure = error;
    }
  }
  written.seconds = seconds_since(start);
  return written;
}

void Checkpointer::poll() {
  if (!writing_.valid()) return;
  if (writing_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) collect();
}

void Checkpointer::wait() {
  const auto start = Clock::now();
  collect();
  stats_.wait_seconds += seconds_since(start);
}

void Checkpointer::collect() {
  if (!writing_.valid()) return;
  const Written written = writing_.get();
  stats_.write_seconds += written.seconds;
  if (written.prune_failure) {
    log::warn("old checkpoints could not be removed: " + written.prune_failure->message());
  }
  if (!written.failure) {
    failures_in_a_row_ = 0;
    return;
  }
  ++stats_.failed;
  if (++failures_in_a_row_ >= kFailuresBeforeStop) throw *written.failure;
  log::warn("checkpoint of step " + std::to_string(written.step) +
            " could not be saved, training goes on: " + written.failure->message());
}

std::vector<int64_t> Checkpointer::steps_to_keep(const std::vector<int64_t>& steps,
                                                 const TrainState& state,
                                                 const KeepOptions& options) {
  std::set<int64_t> keep;
  const auto newest = static_cast<size_t>(std::max(options.keep_last, options.average_last));
  for (size_t i = steps.size() - std::min(steps.size(), newest); i < steps.size(); ++i) {
    keep.insert(steps[i]);
  }
  // Until a finite update has followed the newest, a rollback needs the one before.
  if (options.keep_good) {
    const auto end = std::ranges::upper_bound(steps, state.good_step);
    if (end != steps.begin()) keep.insert(*std::prev(end));
  }
  std::vector<std::pair<double, int64_t>> ranked;  // best first; of equals the earlier
  for (const int64_t step : steps) {
    const auto found = state.quality.find(step);
    if (found != state.quality.end() && step >= state.best_from) {
      ranked.emplace_back(-found->second, step);
    }
    if (options.keep_every > 0 && step % options.keep_every == 0) keep.insert(step);
  }
  std::sort(ranked.begin(), ranked.end());
  for (size_t i = 0; i < ranked.size() && i < static_cast<size_t>(options.keep_best); ++i) {
    keep.insert(ranked[i].second);
  }
  return {keep.begin(), keep.end()};
}

}  // namespace stretto::runs
