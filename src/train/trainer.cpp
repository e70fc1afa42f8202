#include "train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ranges>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/system_info.h"
#include "base/text.h"
#include "distributed/numbers.h"
#include "kernels/cuda/cuda.h"
#include "parallel/replicas.h"
#include "runs/average.h"
#include "train/frozen_parts.h"
#include "train/shown_numbers.h"

namespace stretto::train {
namespace {

using Clock = std::chrono::steady_clock;

/// The arena of what is not frozen, with what trains later.
optim::Arena arena_to_train(Task& task, const TrainOptions& options) {
  const FrozenParts parts = freeze_parts(task, options.freeze, options.unfreeze);
  return optim::Arena(task.model(), optim::Arena::Gradients::kAllocated, parts.late);
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
                .prefetch = setup_.prefetch}),
      checkpointer_(setup_.run_directory, setup_.identity, setup_.train.checkpoints_kept(),
                    {.in_background = setup_.train.save_in_background}),
      forensics_(task, arena_, updater_, group_,
                 {.run_directory = setup_.run_directory,
                  .identity = setup_.identity,
                  .seed = static_cast<uint64_t>(setup_.run.seed),
                  .compute = setup_.precision.compute,
                  .compress = setup_.dist.compress,
                  .clip_norm = setup_.optim.clip_norm,
                  .rolls_back = setup_.train.forensics.policy == "rollback"}),
      policy_(setup_.train.forensics),
      spikes_(setup_.train.forensics),
      schedule_end_(setup_.schedule, setup_.train, task.train_batches().num_batches()),
      report_every_(setup_.report.interval(
          planned_updates(setup_.train, task.train_batches().num_batches()))) {
  if (setup_.handle_signals) signals_.emplace();
  if (restore()) {
    if (const auto it = state_.parts.find("nonfinite"); it != state_.parts.end()) {
      policy_.restore(it->second);
    }
    if (is_root()) {
      log::info("resuming from the checkpoint of step " + with_thousands(state_.step));
    }
  }
  schedule_end_.require_room();
  tell_schedule();
  open_observer();
}

Trainer::~Trainer() = default;

// What the configuration does not say: how many updates it comes to.
void Trainer::tell_schedule() {
  const std::string text = schedule_end_.text();
  if (text.empty() || !is_root()) return;
  setup_.description.facts.emplace_back("schedule", text);
  log::info("  schedule: " + text);
}

void Trainer::open_observer() {
  if (!is_root()) return;
  observer_.reset();
  observer_ = std::make_unique<RunObserver>(
      setup_.run_directory, setup_.report, setup_.description,
      report::ResumePoint{.step = state_.step,
                          .validated = state_.step > 0 && state_.validated_step == state_.step,
                          .mark = state_.metrics});
  tell_notes();
}

// Cutting metrics.jsonl back has taken away those that stood behind the checkpoint.
void Trainer::tell_notes() {
  std::vector<std::string> notes;
  if (state_.step == 0) notes = setup_.description.notes;
  if (setup_.notes_at) {
    for (auto& note : setup_.notes_at(state_.step)) notes.push_back(std::move(note));
  }
  for (auto& note : notes) {
    report::MetricsEvent event{.step = state_.step, .epoch = state_.epoch + 1, .event = "data"};
    event.note = std::move(note);
    observer_->event(event);
  }
}

// Rank 0 reads; the others get what it read.
bool Trainer::restore() {
  std::string json;
  std::vector<optim::StateTensor> tensors;
  if (is_root()) {
    tensors = updater_.empty_state();
    if (const auto restored = checkpointer_.restore(arena_, tensors)) {
      json = restored->to_json();
    } else if (!setup_.train.init_from.empty()) {
      runs::initialise_from(setup_.initial_run(), arena_, setup_.identity.tokenizer,
                            setup_.match_tables,
                            {.entries = setup_.train.init_only,
                             .tied = task_.tied_names(),
                             .replaceable = task_.replaceable_parts(),
                             .replaces_all = task_.replaces_all_parts()});
    }
  }
  json = group_.all_gather_bytes(json).front();
  updater_.broadcast_parameters();
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
  state_.parts["nonfinite"] = policy_.state();
  state_.parts["spikes"] = spikes_.state();
  state_.loss_scales = forensics_.loss_scales();
  if (observer_) state_.metrics = observer_->metrics_mark();
  if (auto end = schedule_end_.state(); !end.empty()) state_.parts["schedule_end"] = std::move(end);
  auto& plateau = state_.parts["plateau"];
  plateau = {{"without_progress", static_cast<double>(plateau_.without_progress)},
             {"reductions", static_cast<double>(plateau_.reductions)}};
  if (std::isfinite(plateau_.best)) plateau["best"] = plateau_.best;
}

void Trainer::restore_parts() {
  const auto restore_part = [&](const char* name, auto& part) {
    if (const auto it = state_.parts.find(name); it != state_.parts.end()) part.restore(it->second);
  };
  restore_scaler();
  restore_part("noise_scale", updater_.noise_scale());
  restore_part("spikes", spikes_);
  restore_part("schedule_end", schedule_end_);
  forensics_.restore(state_.loss_scales);
  plateau_ = {};
  if (const auto it = state_.parts.find("plateau"); it != state_.parts.end()) {
    const auto value = [&](const char* name, double otherwise) {
      const auto found = it->second.find(name);
      return found == it->second.end() ? otherwise : found->second;
    };
    plateau_ = {.best = value("best", plateau_.best),
                .without_progress = static_cast<int64_t>(value("without_progress", 0)),
                .reductions = static_cast<int64_t>(value("reductions", 0))};
  }
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
    if (interrupted() && !stop_reason()) return leave_early("a signal", ExitCode::kInterrupted);
    if (validation_due()) validate();
    if (save_due()) save();
    if (const auto reason = stop_reason()) return finish(*reason);
    if (is_far_enough()) return leave_early("--until", ExitCode::kOk);
    if (interrupted()) return leave_early("a signal", ExitCode::kInterrupted);
    const Recorded done = update();
    record(done);
    checkpointer_.poll();
    if (!done.update.finite) after_failed_update(done);
    grad_norm_ = done.update.grad_norm;
    const int64_t every = setup_.dist.check_every;
    if (every > 0 && state_.step % every == 0) check_replicas();
  }
}

// Asked during an update, when all ranks tell each other.
int Trainer::local_stop() const {
  if (signals_ && signals_->requested()) return kSignal;
  const double hours = setup_.train.max_hours;
  return hours > 0 && is_root() && state_.seconds >= hours * 3600 ? kTimeIsUp : kGoOn;
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
                               .reductions = plateau_.reductions,
                               .width = setup_.model_width});
}

Trainer::Recorded Trainer::update() {
  const auto start = Clock::now();
  Recorded done;
  updater_.train_after(state_.stepped());
  done.update = updater_.gradients(state_.step, [this] { return local_stop(); });
  done.lr = learning_rate() * policy_.lr_factor();
  done.skipped = !done.update.finite;
  if (done.update.finite) {
    policy_.succeeded();
    state_.good_step = saved_step_;
    const auto spike = spikes_.look(task_.shown_loss(done.update.totals), done.update.grad_norm);
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
  try {
    updater_.scaled(done.update);
  } catch (const Error& error) {  // first it is recorded and looked at
    if (error.code() != ExitCode::kNumeric) throw;
    done.scale_at_its_end = error;
  }
  forensics_.note_scale(done.update.loss_scale);
  agreed_stop_ = std::max(agreed_stop_, done.update.stop);
  const auto next = updater_.position();
  state_.step += 1;
  state_.epoch = next.epoch;
  state_.batch_index = next.index;
  state_.skipped_updates += done.skipped ? 1 : 0;
  state_.skipped_in_a_row = done.skipped ? state_.skipped_in_a_row + 1 : 0;
  state_.counts_attempts = false;
  if (done.skipped && state_.step % setup_.train.save_every == 0) save_soon_ = true;
  done.update.seconds = seconds_since(start);
  state_.seconds += done.update.seconds;
  return done;
}

void Trainer::record(const Recorded& done) {
  const UpdateResult& result = done.update;
  const auto& counts = result.totals.counts;
  throughput_.add(result.seconds, counts.empty() ? 0 : counts.front());
  const bool scheduled = is_scheduled_record();
  const bool event_due = scheduled || done.skipped || !done.note.empty();
  if (observer_) {
    const auto& display = setup_.description.display;
    const auto batches = static_cast<double>(task_.train_batches().num_batches());
    const auto measures = measures_of(task_, result.totals);
    observer_->progress(
        {.step = state_.step,
         .last_step = last_step(),
         .epoch = result.epoch,
         .epoch_fraction = static_cast<double>(state_.batch_index) / batches,
         .numbers = progress_numbers(task_.shown_loss(result.totals), measures, display),
         .lr = done.lr,
         .grad_norm = result.grad_norm,
         .rate = throughput_.per_second(),
         .rate_unit = display.rate.short_unit,
         .eta_seconds = eta_seconds(),
         .memory_bytes = static_cast<int64_t>(peak_rss_bytes())});
    if (event_due) record_event(done);
  }
  if (is_root() && !done.note.empty())
    log::warn("step " + with_thousands(state_.step) + ": " + done.note);
  if (scheduled) throughput_.begin_window();
}

void Trainer::record_event(const Recorded& done) {
  const UpdateResult& result = done.update;
  const auto& rate = setup_.description.display.rate;
  report::MetricsEvent event{.step = state_.step, .epoch = result.epoch, .event = "train"};
  event.loss = task_.shown_loss(result.totals);
  event.measures = named_measures(measures_of(task_, result.totals));
  event.lr = done.lr;
  event.grad_norm = result.grad_norm;
  event.counts = named_counts(task_.counters(), result.totals.counts);
  event.counts.push_back({rate.key, throughput_.per_second()});
  event.loss_scale = result.loss_scale;
  event.peak_memory_bytes = static_cast<int64_t>(peak_rss_bytes());
  event.peak_device_memory_bytes = kernels::cuda::peak_memory_bytes(arena_.params().device());
  event.seconds = state_.seconds;
  event.batch_hash = hex64(result.batch_hash);
  if (done.skipped) event.skipped = true;
  event.noise_scale = updater_.noise_scale().value();
  if (group_.size() > 1) {
    event.processes = group_.size();
    event.comm_seconds = updater_.communication().seconds();
    event.comm_wait_seconds = updater_.communication().wait_seconds;
  }
  if (!done.note.empty()) event.note = done.note;
  if (!is_scheduled_record()) event.unscheduled = true;
  observer_->event(event);
}

void Trainer::after_failed_update(const Recorded& done) {
  const auto decision =
      policy_.failed({.loss_finite = std::isfinite(done.update.totals.loss()),
                      .scaled = updater_.scaler().adapts() && !done.scale_at_its_end});
  const std::string report = decision.examine || done.scale_at_its_end ? examine(done) : "";
  NumericStop stop{.step = state_.step, .report = report};
  if (done.scale_at_its_end || decision.action == NonfiniteDecision::Action::kStop) {
    stop.run = forensics_.advice_context(state_.good_step);
  }
  if (done.scale_at_its_end) {
    const Error& error = *done.scale_at_its_end;
    stop.scale = forensics_.advice_on_scale(done.update, error.advice());
    throw policy_.stop_error(error, stop);
  }
  switch (decision.action) {
    case NonfiniteDecision::Action::kSkip:
      return;
    case NonfiniteDecision::Action::kStop:
      stop.scale = forensics_.advice_on_scale(done.update);
      throw policy_.stop_error(stop);
    case NonfiniteDecision::Action::kRollback:
      roll_back(report);
  }
}

std::string Trainer::examine(const Recorded& done) {
  activity("looking for what is not finite");
  const std::string report = forensics_.examine(
      {.update = done.update, .step = state_.step, .lr = done.lr, .good_step = state_.good_step});
  activity("");
  return report;
}

// Step of the checkpoint to go back to, 0 = none; those after it are out of the way.
int64_t Trainer::rollback_target() {
  std::vector<double> targets(static_cast<size_t>(group_.size()));
  if (is_root()) {
    const int64_t target = policy_.rollback_target({.checkpoints = checkpointer_.steps(),
                                                    .good_step = state_.good_step,
                                                    .failed_step = state_.step});
    if (target > 0) checkpointer_.undo_after(target);
    targets.front() = static_cast<double>(target);
  }
  distributed::gather_numbers(group_, targets);
  return static_cast<int64_t>(targets.front());
}

// Counters and data order go back with the checkpoint; the policy remembers, and the loss scaler
// keeps what it has learned: the checkpoint's scale would overflow again.
void Trainer::roll_back(const std::string& report) {
  const int64_t failed_step = state_.step;
  const auto scale = updater_.scaler().state();
  const auto scales = forensics_.loss_scales();
  if (rollback_target() == 0 || !restore()) {
    const Error error = policy_.stop_error({.step = failed_step,
                                            .report = report,
                                            .run = forensics_.advice_context(state_.good_step)});
    throw Error(error.code(),
                error.what() + std::string("; no checkpoint is there that a finite update followed,"
                                           " and so none to go back to"),
                error.advice());
  }
  updater_.scaler().restore(scale);
  forensics_.restore(scales);
  policy_.rolled_back(failed_step, state_.step);
  state_.good_step = state_.step;
  save_soon_ = true;  // with the smaller rate, lest a kill forgets it
  if (is_root()) {
    log::warn("step " + with_thousands(failed_step) + ": back to the checkpoint of step " +
              with_thousands(state_.step) + ", learning rate times " +
              shortest(policy_.lr_factor()));
  }
  open_observer();
}

// Also before each checkpoint, so that those which are there come from ranks that agreed.
void Trainer::check_replicas() {
  if (group_.size() == 1 || setup_.dist.check_every == 0 || compared_step_ == state_.step) return;
  compared_step_ = state_.step;
  parallel::require_equal_replicas(
      group_, {.step = state_.step, .grad_norm = grad_norm_, .weights = arena_.weights_hash()});
}

// That ends the run, as far as is known: each update that is left out moves it.
int64_t Trainer::last_step() const {
  int64_t steps = setup_.train.max_steps;
  if (setup_.until > 0 && (steps == 0 || setup_.until < steps)) steps = setup_.until;
  return steps > 0 ? steps + state_.skipped_updates : 0;
}

double Trainer::eta_seconds() const {
  const double per_update = throughput_.seconds_per_update();
  if (per_update < 0) return -1;
  double left = -1;
  const auto consider = [&](double seconds) {
    if (left < 0 || seconds < left) left = std::max(0.0, seconds);
  };
  const auto& train = setup_.train;
  if (last_step() > 0) consider(per_update * static_cast<double>(last_step() - state_.step));
  if (train.max_hours > 0) consider(train.max_hours * 3600 - state_.seconds);
  if (train.max_epochs > 0) {
    const int64_t batches = task_.train_batches().num_batches();
    const int64_t micro = (train.max_epochs - state_.epoch) * batches - state_.batch_index;
    consider(per_update * static_cast<double>(micro) / static_cast<double>(train.update_freq));
  }
  return left;
}

// The end of a run validates too, and before it is saved: the last checkpoint then knows of that
// validation, and a finished run that is started again has nothing left to do.
bool Trainer::validation_due() const {
  if (!task_.can_validate()) return false;
  if (state_.step == 0) return start_is_due();
  if (state_.validated_step == state_.step) return false;
  return state_.step % setup_.eval.every == 0 || stop_reason().has_value() || is_far_enough();
}

// A run that was ended before its first checkpoint begins afresh, and so does its metrics.jsonl.
bool Trainer::start_is_due() const {
  return setup_.eval.at_start && !validated_start_;
}

void Trainer::validate() {
  activity("validating");
  const Validation result = [&] {
    const auto trained = updater_.use_average();
    task_.model().eval();
    const kernels::ComputeScope arithmetic(setup_.validation_precision.compute);
    return task_.validate();
  }();
  const bool improved = judge(result);
  if (!observer_) return;
  const auto& display = setup_.description.display;
  report::MetricsEvent event = validation_event(result, display);
  event.step = state_.step;
  event.epoch = state_.epoch + 1;
  event.seconds = state_.seconds;
  if (!result.samples.empty()) observer_->samples(state_.step, result.samples);
  observer_->event(event);
  activity("");
  log::info("step " + with_thousands(state_.step) + ": valid " + validation_text(result, display) +
            (improved ? " (best so far)" : ""));
}

// Whether it is the best so far. All ranks have the same scores. The weights before the first
// update are no result of training, and no checkpoint holds them: nothing is compared with them.
bool Trainer::judge(const Validation& result) {
  const Score& best_by = score_to_rank_by(result.scores);
  if (state_.step == 0) {
    validated_start_ = true;
    return false;
  }
  const double quality = best_by.higher_is_better ? best_by.value : -best_by.value;
  if (std::isfinite(quality)) state_.quality[state_.step] = quality;  // JSON knows no NaN
  state_.validated_step = state_.step;
  // The end of a run validates between intervals too: one that goes on later must not notice, so
  // plateau and train.patience neither count that validation nor compare others with it.
  if (const int64_t every = setup_.eval.every; state_.step % every == 0) {
    const bool progress = state_.best_step(every) == state_.step;
    state_.bad_validations = progress ? 0 : state_.bad_validations + 1;
    const Score* loss = find_score(result.scores, "loss");
    plateau_ = optim::after_validation(setup_.schedule, plateau_, loss ? loss->value : -quality);
  }
  return state_.best_step() == state_.step;
}

const Score& Trainer::score_to_rank_by(const std::vector<Score>& scores) const {
  if (const Score* score = find_score(scores, setup_.eval.best_metric)) return *score;
  std::vector<std::string> names;
  for (const Score& score : scores) names.push_back(score.name);
  throw Error(ExitCode::kUsage,
              "eval.best_metric: a validation has no score `" + setup_.eval.best_metric + "`",
              names.empty() ? "this task has none" : "it has " + join(names, ", "));
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
  activity("saving");
  check_replicas();
  keep_parts();
  const auto tensors = updater_.gather_state();
  if (is_root()) checkpointer_.save(arena_, tensors, state_);
  save_soon_ = false;
  saved_step_ = state_.step;  // also after a failure: the next try is at the next interval
  activity("");
}

bool Trainer::is_far_enough() const {
  return setup_.until > 0 && counted_updates() >= setup_.until;
}

std::optional<std::string> Trainer::stop_reason() const {
  const auto& train = setup_.train;
  if (train.max_steps > 0 && counted_updates() >= train.max_steps) return "train.max_steps reached";
  if (train.max_epochs > 0 && state_.epoch >= train.max_epochs) return "train.max_epochs reached";
  const bool time_is_up =
      group_.size() == 1 ? local_stop() == kTimeIsUp : agreed_stop_ == kTimeIsUp;
  if (time_is_up) return "train.max_hours reached";
  if (train.patience > 0 && state_.bad_validations >= train.patience) {
    return "no better validation in " + std::to_string(train.patience) + " (train.patience)";
  }
  return std::nullopt;
}

ExitCode Trainer::leave_early(const std::string& by, ExitCode code) {
  if (saved_step_ != state_.step && state_.step > 0) save();
  if (!is_root()) return code;
  checkpointer_.wait();
  const bool failed = checkpointer_.last_save_failed();
  observer_->finish("stopped by " + by + " at step " + with_thousands(state_.step));
  log::info((failed ? "stopped at step " : "saved and stopped at step ") +
            with_thousands(state_.step) + (code == ExitCode::kOk ? "; without --until" : ";") +
            " the same command goes on from there");
  return failed ? ExitCode::kIo : code;
}

ExitCode Trainer::finish(const std::string& reason) {
  if (saved_step_ != state_.step && state_.step > 0) save();
  if (!is_root()) return ExitCode::kOk;
  checkpointer_.wait();
  if (setup_.train.average_last > 0 && !checkpointer_.last_save_failed()) average();
  report::MetricsEvent event{.step = state_.step, .epoch = state_.epoch + 1, .event = "end"};
  event.seconds = state_.seconds;
  event.peak_memory_bytes = static_cast<int64_t>(peak_rss_bytes());
  event.peak_device_memory_bytes = kernels::cuda::peak_memory_bytes(arena_.params().device());
  event.weights_hash = hex64(arena_.weights_hash());
  event.reason = reason;
  observer_->event(event);
  observer_->finish("finished: " + reason);
  log::info("finished at step " + with_thousands(state_.step) + ": " + reason);
  tell_of_skips();
  log_costs();
  return checkpointer_.last_save_failed() ? ExitCode::kIo : ExitCode::kOk;
}

// Why a run has more steps than train.max_steps, or as many although it skipped some.
void Trainer::tell_of_skips() const {
  const int64_t skipped = state_.skipped_updates, steps = setup_.train.max_steps;
  if (skipped == 0) return;
  std::string words =
      "  " + with_thousands(skipped) + (skipped == 1 ? " step was skipped" : " steps were skipped");
  if (state_.counts_attempts && state_.step >= steps && steps > 0) {
    words += "; they counted towards train.max_steps when this run ended: raise it to go on";
  }
  log::info(words);
}

// What saving took from training, in the log for whoever asks.
void Trainer::log_costs() const {
  const auto& saving = checkpointer_.stats();
  if (saving.saves == 0) return;
  log::info("  " + counted(saving.saves, "checkpoint") + ": training waited " +
            fixed(saving.stall_seconds * 1e3, 0) + " ms in all, " +
            fixed(saving.longest_stall_ms, 1) + " ms at the longest; written beside it in " +
            fixed(saving.write_seconds, 1) + " s");
}

void Trainer::average() {
  const auto path = runs::average_last_checkpoints(setup_.run_directory, setup_.train.average_last,
                                                   setup_.identity, "averaged");
  log::info("mean of the last checkpoints: " + path.filename().string());
}

}  // namespace stretto::train
