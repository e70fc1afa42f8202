#include "train/trainer.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <ranges>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "compress/masks.h"
#include "compress/prune_schedule.h"
#include "distributed/numbers.h"
#include "parallel/replicas.h"
#include "runs/average.h"
#include "runs/stored_masks.h"
#include "train/frozen_parts.h"

namespace stretto::train {
namespace {

using Clock = std::chrono::steady_clock;

/// The arena of what is not frozen, with what trains later.
optim::Arena arena_to_train(Task& task, const TrainOptions& options) {
  const FrozenParts parts = freeze_parts(task, options.freeze, options.unfreeze);
  return optim::Arena(task.model(), optim::Arena::Gradients::kAllocated, parts.late);
}

ValidatorSetup validator_setup(const TrainerSetup& setup) {
  const auto best_by = setup.description.display.style(setup.eval.best_metric);
  return {.eval = setup.eval,
          .higher_is_better = best_by.higher_is_better,
          .schedule = setup.schedule,
          .average_nonmono = setup.train.average_nonmono,
          .pruned_after = compress::PruneSchedule(setup.compress.prune).last(),
          .compute = setup.validation_precision.compute};
}

RecorderSetup recorder_setup(const TrainerSetup& setup, Task& task,
                             const distributed::ProcessGroup& group) {
  const int64_t num_batches = task.train_batches().num_batches();
  return {.run_directory = setup.run_directory,
          .report = setup.report,
          .description = setup.description,
          .notes_at = setup.notes_at,
          .every = setup.report.interval(planned_updates(setup.train, num_batches)),
          .num_batches = num_batches,
          .num_processes = group.size()};
}

UpdateForensicsSetup forensics_setup(const TrainerSetup& setup) {
  return {.run_directory = setup.run_directory,
          .identity = setup.identity,
          .compute = setup.precision.compute,
          .compress = setup.dist.compress,
          .clip_norm = setup.optim.clip_norm,
          .rolls_back = setup.train.forensics.policy == "rollback"};
}

// Where epochs say how long the run is; of other lengths the rules tell it (experiment/rules.h).
void require_training_after_pruning(const TrainerSetup& setup, int64_t num_batches) {
  const int64_t end = planned_updates(setup.train, num_batches);
  const compress::PruneSchedule prunings(setup.compress.prune);
  if (end == 0 || prunings.prunings() == 0 || prunings.last() < end) return;
  throw Error(ExitCode::kUsage,
              "compress.prune: its last pruning comes after " + counted(prunings.last(), "update") +
                  ", and the run ends after " + with_thousands(end),
              "lower compress.prune.every or begin, or train longer: what is pruned needs training "
              "after it");
}

/// Reasons to stop that are not the same on every rank by themselves.
enum Stop : int { kGoOn, kTimeIsUp, kSignal };

}  // namespace

Trainer::Trainer(Task& task, TrainerSetup setup, distributed::ProcessGroup group)
    : task_(task),
      setup_(std::move(setup)),
      group_(std::move(group)),
      arena_(arena_to_train(task, setup_.train)),
      updater_(task, arena_, group_,
               {.run = setup_.run,
                .train = setup_.train,
                .optim = setup_.optim,
                .dist = setup_.dist,
                .precision = setup_.precision,
                .loading = setup_.loading,
                .compress = setup_.compress}),
      checkpointer_(setup_.run_directory, setup_.identity, setup_.train.checkpoints_kept(),
                    {.in_background = setup_.train.save_in_background}),
      stops_(setup_.train, setup_.until, task.train_batches().num_batches(), setup_.eval.every),
      schedule_end_(setup_.schedule, setup_.train, task.train_batches().num_batches()),
      recorder_(task, arena_, stops_, recorder_setup(setup_, task, group_), group_.is_root()),
      validator_(task, validator_setup(setup_)),
      failures_(task, arena_, updater_, group_,
                {.options = setup_.train.forensics,
                 .forensics = forensics_setup(setup_),
                 .activity = [this](const std::string& what) { recorder_.activity(what); }}) {
  // A process trains once, and then leaves: with several of them rank 0 may still be at work while
  // another has done its part, and a signal goes to all.
  if (setup_.handle_signals) signals_.emplace(StopSignals::AtEnd::kKeep);
  if (restore() && is_root()) {
    log::info("resuming from the checkpoint of step " + with_thousands(state_.step));
  }
  schedule_end_.require_room();
  require_training_after_pruning(setup_, task.train_batches().num_batches());
  // What the configuration does not say: how many updates it comes to.
  if (const auto text = schedule_end_.text(); !text.empty()) recorder_.fact("schedule", text);
  recorder_.open(state_);
}

Trainer::~Trainer() = default;

// The weights of train.init_from, on rank 0, and which of them are pruned there and stay so.
compress::PackedMasks Trainer::initialise() {
  const runs::InitialRun initial = setup_.initial_run();
  runs::initialise_from(initial, arena_, setup_.identity.tokenizer, setup_.match_tables,
                        {.entries = setup_.train.init_only,
                         .tied = task_.tied_names(),
                         .replaceable = task_.replaceable_parts(),
                         .replaces_all = task_.replaces_all_parts()});
  if (!setup_.compress.prune.hold) return {};
  return compress::masks_that_hold(runs::stored_masks(initial.checkpoint), arena_);
}

// Rank 0 has them; the others get what it has.
void Trainer::restore_masks(const compress::PackedMasks& masks) {
  const std::string bytes = group_.all_gather_bytes(compress::joined_masks(masks)).front();
  const auto unknown = updater_.set_masks(compress::split_masks(bytes));
  if (!is_root()) return;
  if (!unknown.empty()) {
    log::warn("masks of pruned weights that do not fit this model are left out: " +
              join(unknown, ", "));
  }
  if (updater_.masks().any()) {
    log::info("  pruned weights that stay zero: " + with_thousands(updater_.masks().num_pruned()));
  }
}

// Rank 0 reads; the others get what it read.
bool Trainer::restore() {
  std::string json;
  std::vector<optim::StateTensor> tensors;
  compress::PackedMasks masks;
  if (is_root()) {
    tensors = updater_.empty_state();
    if (const auto restored = checkpointer_.restore(arena_, tensors, &masks)) {
      json = restored->to_json();
    } else if (!setup_.train.init_from.empty()) {
      masks = initialise();
    }
  }
  json = group_.all_gather_bytes(json).front();
  updater_.broadcast_parameters();
  restore_masks(masks);
  if (json.empty()) return false;
  state_ = runs::TrainState::from_json(json, "checkpoint");
  saved_step_ = compared_step_ = state_.step;
  updater_.scatter_state(tensors);
  updater_.seek({state_.epoch, state_.batch_index});
  restore_parts();
  return true;
}

// What others carry from update to update goes into state.json under their names.
void Trainer::keep_parts() {
  state_.parts["loss_scaler"] = updater_.scaler().state();
  state_.parts["noise_scale"] = updater_.noise_scale().state();
  state_.parts["plateau"] = validator_.state();
  if (auto end = schedule_end_.state(); !end.empty()) state_.parts["schedule_end"] = std::move(end);
  failures_.save(state_);
  if (const auto mark = recorder_.metrics_mark()) state_.metrics = mark;
}

void Trainer::restore_parts() {
  const auto restore_part = [&](const char* name, auto& part) {
    if (const auto it = state_.parts.find(name); it != state_.parts.end()) part.restore(it->second);
  };
  restore_scaler();
  restore_part("noise_scale", updater_.noise_scale());
  restore_part("schedule_end", schedule_end_);
  failures_.restore(state_);
  const auto plateau = state_.parts.find("plateau");
  validator_.restore(plateau == state_.parts.end() ? std::map<std::string, double>()
                                                   : plateau->second);
  updater_.average_after(validator_.average_begin());
}

// Where the precision goes by the device (train.precision = "auto_fp16"), a run may go on with
// another scaler than it began with.
void Trainer::restore_scaler() {
  const auto saved = state_.parts.find("loss_scaler");
  if (saved == state_.parts.end()) return;
  auto& scaler = updater_.scaler();
  const auto fresh = scaler.state();
  if (std::ranges::equal(saved->second | std::views::keys, fresh | std::views::keys)) {
    return scaler.restore(saved->second);
  }
  if (is_root()) {
    log::info("the loss scale begins anew, at " + shortest(scaler.scale()) +
              ": the checkpoint was written in another precision");
  }
}

ExitCode Trainer::run() {
  std::vector<double> stops(static_cast<size_t>(group_.size()));
  stops[static_cast<size_t>(group_.rank())] = local_stop();
  distributed::gather_numbers(group_, stops);
  agreed_stop_ = static_cast<int>(*std::max_element(stops.begin(), stops.end()));
  for (;;) {
    if (interrupted() && !stop_reason()) return leave_early(LeftBy::kSignal);
    const bool ends = stop_reason().has_value() || stops_.is_far_enough(state_);
    if (validator_.is_due(state_, ends)) validate();
    if (save_due()) save();
    if (const auto reason = stop_reason()) return finish(*reason);
    if (stops_.is_far_enough(state_)) return leave_early(LeftBy::kUntil);
    if (interrupted()) return leave_early(LeftBy::kSignal);
    const TrainStep done = step();
    recorder_.step(done, state_);
    checkpointer_.poll();
    if (!done.update.finite) {
      const auto verdict = failures_.failed(done, state_);
      if (verdict.rolls_back) roll_back(verdict.report);
    }
    grad_norm_ = done.update.grad_norm;
    const int64_t every = setup_.dist.check_every;
    if (every > 0 && state_.step % every == 0) check_replicas();
  }
}

// Asked during an update, when all ranks tell each other.
int Trainer::local_stop() const {
  if (signals_ && signals_->requested()) return kSignal;
  return is_root() && stops_.time_is_up(state_) ? kTimeIsUp : kGoOn;
}

bool Trainer::interrupted() const {
  // One process need not ask anybody, and so sees a signal that came between updates at once.
  return agreed_stop_ == kSignal || (group_.size() == 1 && signals_ && signals_->requested());
}

// An update that was left out moves neither warm-up nor schedule (as in fairseq): while a loss
// scaler looks for its scale the weights stand still.
double Trainer::learning_rate() const {
  const auto batch_size = static_cast<double>(setup_.batch_size);
  return optim::learning_rate(setup_.schedule, optim::peak_learning_rate(setup_.optim, batch_size),
                              {.step = state_.stepped(),
                               .total_steps = schedule_end_.updates(),
                               .reductions = validator_.reductions(),
                               .width = setup_.model_width});
}

TrainStep Trainer::step() {
  const auto start = Clock::now();
  TrainStep done;
  const data::Position first = updater_.position();
  if (updater_.train_after(state_.stepped())) validator_.begin_anew(state_);
  done.update = updater_.gradients(state_.step, [this] { return local_stop(); });
  done.lr = learning_rate() * failures_.lr_factor() *
            task_.train_batches().rate_factor(first.epoch, first.index);
  done.skipped = !done.update.finite;
  if (done.update.finite) {
    state_.good_step = saved_step_;
    const auto spike =
        failures_.finite(task_.shown_loss(done.update.totals), done.update.grad_norm);
    done.skipped = spike.skip;
    done.note = spike.text;
  }
  if (done.update.split > 0) {
    done.note += (done.note.empty() ? "" : "; ") +
                 std::string("done again with micro-batches split ") +
                 counted(done.update.split, "time") + " for lack of memory";
  }
  if (!done.skipped) {
    const double clip = optim::clip_factor(done.update.grad_norm, setup_.optim.clip_norm);
    updater_.step(done.update, done.lr, clip, state_.stepped() + 1);
  }
  scaled(done);
  agreed_stop_ = std::max(agreed_stop_, done.update.stop);
  const auto next = updater_.position();
  state_.step += 1;
  state_.epoch = next.epoch;
  state_.batch_index = next.index;
  state_.skipped_updates += done.skipped ? 1 : 0;
  state_.skipped_in_a_row = done.skipped ? state_.skipped_in_a_row + 1 : 0;
  state_.counts_attempts = false;
  if (done.skipped && state_.step % setup_.train.save_every == 0) save_soon_ = true;
  done.noise_scale = updater_.noise_scale().value();
  done.sparsity = sparsity();
  done.communication = updater_.communication();
  done.update.seconds = seconds_since(start);
  state_.seconds += done.update.seconds;
  return done;
}

// Of the weights that may be pruned; nothing where none is.
std::optional<double> Trainer::sparsity() const {
  return updater_.masks().any() ? std::optional(updater_.masks().sparsity()) : std::nullopt;
}

// A scaler that cannot go on ends the run, but first its update is recorded and looked at.
void Trainer::scaled(TrainStep& step) {
  try {
    updater_.scaled(step.update);
  } catch (const Error& error) {
    if (error.code() != ExitCode::kNumeric) throw;
    step.scaler_error = error;
  }
  failures_.note_scale(step.update.loss_scale);
}

void Trainer::roll_back(const std::string& report) {
  failures_.roll_back(report, state_, checkpointer_, [this] { return restore(); });
  save_soon_ = true;  // with the smaller rate, lest a kill forgets it
  recorder_.open(state_);
}

// Also before each checkpoint, so that those which are there come from ranks that agreed.
void Trainer::check_replicas() {
  if (group_.size() == 1 || setup_.dist.check_every == 0 || compared_step_ == state_.step) return;
  compared_step_ = state_.step;
  parallel::require_equal_replicas(
      group_, {.step = state_.step, .grad_norm = grad_norm_, .weights = arena_.weights_hash()});
}

void Trainer::validate() {
  recorder_.activity("validating");
  const Validation result = [&] {
    const auto trained = updater_.use_average();
    const auto rounded = updater_.rounded_weights(state_.stepped());
    return validator_.validate();
  }();
  const bool was_averaging = validator_.average_begin().has_value();
  const bool is_best = validator_.judge(result, state_);
  updater_.average_after(validator_.average_begin());
  if (!was_averaging && validator_.average_begin() && is_root()) {
    log::info(
        "the mean of the weights begins: validations improve no more "
        "(train.average_nonmono)");
  }
  recorder_.validation(result, state_, is_best, sparsity());
}

bool Trainer::save_due() const {
  if (state_.step == 0 || saved_step_ == state_.step) return false;
  // At once, also after an update that was left out: the next one makes other weights of those that
  // were validated, and they have just given a finite loss.
  const bool new_best = setup_.train.keep_best > 0 && state_.validated_step == state_.step &&
                        state_.best_step() == state_.step;
  if (new_best) return true;
  // Weights that give no finite loss are nothing to go back to; save_soon_ remembers.
  if (state_.skipped_in_a_row > 0) return false;
  return save_soon_ || state_.step % setup_.train.save_every == 0;
}

void Trainer::save() {
  recorder_.activity("saving");
  check_replicas();
  keep_parts();
  const auto tensors = updater_.gather_state();
  if (is_root()) checkpointer_.save(arena_, tensors, state_, updater_.masks().packed());
  save_soon_ = false;
  saved_step_ = state_.step;  // also after a failure: the next try is at the next interval
  recorder_.activity("");
}

std::optional<std::string> Trainer::stop_reason() const {
  return stops_.reason(state_,
                       group_.size() == 1 ? local_stop() == kTimeIsUp : agreed_stop_ == kTimeIsUp);
}

ExitCode Trainer::leave_early(LeftBy by) {
  const ExitCode code = by == LeftBy::kUntil ? ExitCode::kOk : ExitCode::kInterrupted;
  if (saved_step_ != state_.step && state_.step > 0) save();
  if (!is_root()) return code;
  checkpointer_.wait();
  const bool failed = checkpointer_.last_save_failed();
  recorder_.leave(state_, by, /*saved=*/!failed);
  return failed ? ExitCode::kIo : code;
}

ExitCode Trainer::finish(const std::string& reason) {
  if (saved_step_ != state_.step && state_.step > 0) save();
  if (!is_root()) return ExitCode::kOk;
  checkpointer_.wait();
  if (setup_.train.average_last > 0 && !checkpointer_.last_save_failed()) average();
  recorder_.end(state_, reason, checkpointer_.stats());
  return checkpointer_.last_save_failed() ? ExitCode::kIo : ExitCode::kOk;
}

void Trainer::average() {
  const auto path = runs::average_last_checkpoints(setup_.run_directory, setup_.train.average_last,
                                                   setup_.identity, "averaged");
  log::info("mean of the last checkpoints: " + path.filename().string());
}

}  // namespace stretto::train
