#include "train/recorder.h"

#include "base/hash.h"
#include "base/log.h"
#include "base/system_info.h"
#include "base/text.h"
#include "kernels/cuda/cuda.h"
#include "train/shown_numbers.h"

namespace stretto::train {
namespace {

std::string at_step(const runs::TrainState& state) {
  return "step " + with_thousands(state.step);
}

// What saving took from training, in the log for whoever asks.
void log_costs(const runs::SaveStats& saving) {
  if (saving.saves == 0) return;
  log::info("  " + counted(saving.saves, "checkpoint") + ": training waited " +
            fixed(saving.stall_seconds * 1e3, 0) + " ms in all, " +
            fixed(saving.longest_stall_ms, 1) + " ms at the longest; written beside it in " +
            fixed(saving.write_seconds, 1) + " s");
}

}  // namespace

Recorder::Recorder(const Task& task, const optim::Arena& arena, const StopConditions& stops,
                   RecorderSetup setup, bool is_root)
    : task_(task), arena_(arena), stops_(stops), setup_(std::move(setup)), is_root_(is_root) {}

void Recorder::fact(const std::string& name, const std::string& text) {
  if (!is_root_) return;
  setup_.description.facts.emplace_back(name, text);
  log::info("  " + name + ": " + text);
}

void Recorder::open(const runs::TrainState& state) {
  if (!is_root_) return;
  observer_.reset();
  observer_ = std::make_unique<RunObserver>(
      setup_.run_directory, setup_.report, setup_.description,
      report::ResumePoint{.step = state.step,
                          .validated = state.step > 0 && state.validated_step == state.step,
                          .mark = state.metrics});
  notes(state);
}

// Cutting metrics.jsonl back has taken away those that stood behind the checkpoint.
void Recorder::notes(const runs::TrainState& state) {
  if (!setup_.notes_at) return;
  for (auto& note : setup_.notes_at(state.step)) {
    report::MetricsEvent event{.step = state.step, .epoch = state.epoch + 1, .event = "data"};
    event.note = std::move(note);
    observer_->event(event);
  }
}

void Recorder::activity(const std::string& what) {
  if (observer_) observer_->activity(what);
}

void Recorder::step(const TrainStep& step, const runs::TrainState& state) {
  if (!observer_) return;
  const auto& counts = step.update.totals.counts;
  throughput_.add(step.update.seconds, counts.empty() ? 0 : counts.front());
  const bool scheduled = is_scheduled(state.step);
  progress(step, state);
  if (scheduled || step.skipped || !step.note.empty()) train_event(step, state);
  if (!step.note.empty()) log::warn(at_step(state) + ": " + step.note);
  if (scheduled) throughput_.begin_window();
}

void Recorder::progress(const TrainStep& step, const runs::TrainState& state) {
  const UpdateResult& result = step.update;
  const auto& display = setup_.description.display;
  const auto batches = static_cast<double>(setup_.num_batches);
  observer_->progress({.step = state.step,
                       .last_step = stops_.last_step(state),
                       .epoch = result.epoch,
                       .epoch_fraction = static_cast<double>(state.batch_index) / batches,
                       .numbers = progress_numbers(task_.shown_loss(result.totals),
                                                   measures_of(task_, result.totals), display),
                       .lr = step.lr,
                       .grad_norm = result.grad_norm,
                       .rate = throughput_.per_second(),
                       .rate_unit = display.rate.short_unit,
                       .eta_seconds = stops_.seconds_left(state, throughput_.seconds_per_update()),
                       .memory_bytes = static_cast<int64_t>(peak_rss_bytes())});
}

void Recorder::train_event(const TrainStep& step, const runs::TrainState& state) {
  const UpdateResult& result = step.update;
  const auto& rate = setup_.description.display.rate;
  report::MetricsEvent event{.step = state.step, .epoch = result.epoch, .event = "train"};
  event.loss = task_.shown_loss(result.totals);
  event.measures = named_measures(measures_of(task_, result.totals));
  event.lr = step.lr;
  event.grad_norm = result.grad_norm;
  event.counts = named_counts(task_.counters(), result.totals.counts);
  event.counts.push_back({rate.key, throughput_.per_second()});
  event.loss_scale = result.loss_scale;
  set_memory(event);
  event.seconds = state.seconds;
  event.data_wait_seconds = result.data_wait_seconds;
  event.batch_hash = hex64(result.batch_hash);
  if (step.skipped) event.skipped = true;
  event.noise_scale = step.noise_scale;
  event.sparsity = step.sparsity;
  if (setup_.num_processes > 1) {
    event.processes = setup_.num_processes;
    event.comm_seconds = step.communication.seconds();
    event.comm_wait_seconds = step.communication.wait_seconds;
  }
  if (!step.note.empty()) event.note = step.note;
  if (!is_scheduled(state.step)) event.unscheduled = true;
  observer_->event(event);
}

void Recorder::set_memory(report::MetricsEvent& event) const {
  event.peak_memory_bytes = static_cast<int64_t>(peak_rss_bytes());
  event.peak_device_memory_bytes = kernels::cuda::peak_memory_bytes(arena_.params().device());
}

void Recorder::validation(const Validation& validation, const runs::TrainState& state, bool is_best,
                          std::optional<double> sparsity) {
  if (!observer_) return;
  const auto& display = setup_.description.display;
  report::MetricsEvent event = validation_event(validation, display);
  event.step = state.step;
  event.epoch = state.epoch + 1;
  event.seconds = state.seconds;
  event.sparsity = sparsity;
  if (!validation.samples.empty()) observer_->samples(state.step, validation.samples);
  observer_->event(event);
  activity("");
  log::info(at_step(state) + ": valid " + validation_text(validation, display) +
            (is_best ? " (best so far)" : ""));
}

void Recorder::end(const runs::TrainState& state, const std::string& reason,
                   const runs::SaveStats& saving) {
  if (!observer_) return;
  report::MetricsEvent event{.step = state.step, .epoch = state.epoch + 1, .event = "end"};
  event.seconds = state.seconds;
  set_memory(event);
  event.weights_hash = hex64(arena_.weights_hash());
  event.reason = reason;
  observer_->event(event);
  observer_->finish("finished: " + reason);
  log::info("finished at " + at_step(state) + ": " + reason);
  tell_of_skips(state);
  log_costs(saving);
}

// Why a run has more steps than train.max_steps, or as many although it skipped some.
void Recorder::tell_of_skips(const runs::TrainState& state) const {
  const int64_t skipped = state.skipped_updates, steps = stops_.max_steps();
  if (skipped == 0) return;
  std::string words =
      "  " + with_thousands(skipped) + (skipped == 1 ? " step was skipped" : " steps were skipped");
  if (state.counts_attempts && state.step >= steps && steps > 0) {
    words += "; they counted towards train.max_steps when this run ended: raise it to go on";
  }
  log::info(words);
}

void Recorder::leave(const runs::TrainState& state, LeftBy by, bool saved) {
  if (!observer_) return;
  const bool until = by == LeftBy::kUntil;
  observer_->finish(std::string("stopped by ") + (until ? "--until" : "a signal") + " at " +
                    at_step(state));
  log::info((saved ? "saved and stopped at " : "stopped at ") + at_step(state) +
            (until ? "; without --until" : ";") + " the same command goes on from there");
}

std::optional<report::MetricsMark> Recorder::metrics_mark() const {
  if (!observer_) return std::nullopt;
  return observer_->metrics_mark();
}

}  // namespace stretto::train
