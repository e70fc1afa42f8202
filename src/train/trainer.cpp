#include "train/trainer.h"

#include <chrono>
#include <cmath>

#include "base/hash.h"
#include "base/log.h"
#include "base/system_info.h"
#include "base/text.h"
#include "train/average.h"

namespace stretto::train {

using Clock = std::chrono::steady_clock;

namespace {

constexpr int64_t kSkipsBeforeStop = 50;
constexpr double kMicrosecond = 1e-6;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

/// What one update did.
struct Trainer::UpdateResult {
  int64_t epoch = 0;  // of its micro-batches, from 1
  double loss_sum = 0, nll_sum = 0, lr = 0, grad_norm = 0, seconds = 0;
  int64_t target_tokens = 0, source_tokens = 0;
  uint64_t batch_hash = 0;
  bool skipped = false;
};

Trainer::Trainer(Task& task, TrainerSetup setup)
    : task_(task),
      setup_(std::move(setup)),
      arena_(task.model()),
      optimizer_(optim::make_optimizer(setup_.optim, arena_)),
      checkpointer_(setup_.run_directory, setup_.identity, setup_.train) {
  const auto restored = checkpointer_.restore(arena_, *optimizer_);
  if (restored) {
    state_ = *restored;
    saved_step_ = state_.step;
    log::info("resuming from the checkpoint of step " + with_thousands(state_.step));
  } else if (!setup_.train.init_from.empty()) {
    initialise_from(setup_.train.init_from, arena_);
  }
  observer_ = std::make_unique<RunObserver>(setup_.run_directory, setup_.report, setup_.description,
                                            state_.step);
  batches_ = std::make_unique<data::Prefetcher>(
      task_.train_batches(), data::Prefetcher::Position{state_.epoch, state_.batch_index},
      setup_.prefetch, /*threads=*/1);
}

Trainer::~Trainer() = default;

ExitCode Trainer::run() {
  for (;;) {
    if (signals_.requested() && !stop_reason()) return leave_interrupted();
    if (validation_due()) validate();
    if (save_due()) save();
    if (const auto reason = stop_reason()) return finish(*reason);
    if (signals_.requested()) return leave_interrupted();
    record(update());
  }
}

int64_t Trainer::schedule_steps() const {
  return setup_.schedule.total_steps > 0 ? setup_.schedule.total_steps : setup_.train.max_steps;
}

// One update: forward and backward of its micro-batches, then the step.
Trainer::UpdateResult Trainer::update() {
  const auto start = Clock::now();
  UpdateResult result;
  const auto first = batches_->position();
  result.epoch = first.epoch + 1;
  Xxh3Stream hash;
  task_.model().train();
  arena_.zero_grads();
  for (int64_t i = 0; i < setup_.train.update_freq; ++i) {
    if (batches_->position().epoch != first.epoch) break;  // an update never crosses an epoch
    const data::Batch batch = batches_->next();
    hash.update(batch.sample_ids.data(), batch.sample_ids.size() * sizeof(int64_t));
    const MicroLoss loss = task_.loss(batch, {static_cast<uint64_t>(setup_.run.seed), state_.step});
    loss.loss_sum.backward();
    result.loss_sum += loss.loss_sum.item<double>();
    result.nll_sum += loss.nll_sum;
    result.target_tokens += loss.target_tokens;
    result.source_tokens += loss.source_tokens;
  }
  result.batch_hash = hash.digest();
  const double per_token = 1.0 / static_cast<double>(result.target_tokens);
  result.grad_norm = optim::gradient_norm(arena_.grads(), per_token);
  result.lr = optim::learning_rate(setup_.schedule, setup_.optim.lr, schedule_steps(), state_.step);
  result.skipped = !std::isfinite(result.grad_norm) || !std::isfinite(result.loss_sum);
  if (!result.skipped) {
    const double clip = optim::clip_factor(result.grad_norm, setup_.optim.clip_norm);
    optimizer_->step(arena_, {.lr = result.lr,
                              .grad_scale = per_token * clip,
                              .number = state_.step - state_.skipped_updates + 1});
  }
  const auto next = batches_->position();
  state_.step += 1;
  state_.epoch = next.epoch;
  state_.batch_index = next.index;
  state_.skipped_updates += result.skipped ? 1 : 0;
  state_.skipped_in_a_row = result.skipped ? state_.skipped_in_a_row + 1 : 0;
  result.seconds = seconds_since(start);
  state_.seconds += result.seconds;
  return result;
}

void Trainer::record(const UpdateResult& result) {
  window_seconds_ += result.seconds;
  window_tokens_ += result.target_tokens;
  session_seconds_ += result.seconds;
  session_updates_ += 1;
  const double tokens = static_cast<double>(result.target_tokens);
  const double nll = result.nll_sum / tokens;
  const double rate = static_cast<double>(window_tokens_) / std::max(window_seconds_, kMicrosecond);
  const auto batches = static_cast<double>(task_.train_batches().num_batches());
  observer_->progress({.step = state_.step,
                       .max_steps = setup_.train.max_steps,
                       .epoch = result.epoch,
                       .epoch_fraction = static_cast<double>(state_.batch_index) / batches,
                       .loss = result.loss_sum / tokens,
                       .ppl = std::exp(nll),
                       .lr = result.lr,
                       .grad_norm = result.grad_norm,
                       .tokens_per_second = rate,
                       .padding_percent = 0,
                       .eta_seconds = eta_seconds(),
                       .memory_bytes = static_cast<int64_t>(peak_rss_bytes())});
  if (result.skipped || state_.step % setup_.report.every == 0) {
    report::MetricsEvent event{.step = state_.step, .epoch = result.epoch, .event = "train"};
    event.loss = result.loss_sum / tokens;
    event.nll = nll;
    event.ppl = std::exp(nll);
    event.lr = result.lr;
    event.grad_norm = result.grad_norm;
    event.target_tokens = result.target_tokens;
    event.source_tokens = result.source_tokens;
    event.tokens_per_second = rate;
    event.loss_scale = 1.0;
    event.peak_memory_bytes = static_cast<int64_t>(peak_rss_bytes());
    event.seconds = state_.seconds;
    event.batch_hash = hex64(result.batch_hash);
    if (result.skipped) event.skipped = true;
    observer_->event(event);
    window_seconds_ = 0;
    window_tokens_ = 0;
  }
  if (state_.skipped_in_a_row >= kSkipsBeforeStop) {
    throw Error(ExitCode::kNumeric,
                "step " + std::to_string(state_.step) +
                    ": the loss or a gradient was not finite in " +
                    std::to_string(kSkipsBeforeStop) + " updates in a row; training stops",
                "go on from the last checkpoint with a lower optim.lr, a longer "
                "schedule.warmup_steps, or optim.clip_norm = 1.0");
  }
}

double Trainer::eta_seconds() const {
  if (session_updates_ == 0) return -1;
  const double per_update = session_seconds_ / static_cast<double>(session_updates_);
  double left = -1;
  const auto consider = [&](double seconds) {
    if (left < 0 || seconds < left) left = std::max(0.0, seconds);
  };
  const auto& train = setup_.train;
  if (train.max_steps > 0)
    consider(per_update * static_cast<double>(train.max_steps - state_.step));
  if (train.max_hours > 0) consider(train.max_hours * 3600 - state_.seconds);
  if (train.max_epochs > 0) {
    const int64_t batches = task_.train_batches().num_batches();
    const int64_t micro = (train.max_epochs - state_.epoch) * batches - state_.batch_index;
    consider(per_update * static_cast<double>(micro) / static_cast<double>(train.update_freq));
  }
  return left;
}

bool Trainer::validation_due() const {
  return task_.can_validate() && state_.step > 0 && state_.step % setup_.eval.every == 0 &&
         state_.validated_step != state_.step;
}

void Trainer::validate() {
  observer_->activity("validating");
  task_.model().eval();
  const ValidationResult result = task_.validate(setup_.eval.bleu);
  report::MetricsEvent event{.step = state_.step, .epoch = state_.epoch + 1, .event = "valid"};
  event.loss = result.loss;
  event.nll = result.nll;
  event.ppl = std::exp(result.nll);
  event.target_tokens = result.target_tokens;
  event.seconds = state_.seconds;
  if (result.bleu >= 0) event.bleu = result.bleu;
  const int64_t best_before = state_.best_step();
  state_.quality[state_.step] = setup_.eval.best_metric == "bleu" ? result.bleu : -result.nll;
  const bool improved = state_.best_step() == state_.step || best_before == 0;
  state_.bad_validations = improved ? 0 : state_.bad_validations + 1;
  state_.validated_step = state_.step;
  observer_->samples(result.samples);
  observer_->event(event);
  observer_->activity("");
  log::info("step " + with_thousands(state_.step) + ": valid loss " + fixed(result.loss, 4) +
            ", nll " + fixed(result.nll, 4) + ", ppl " + fixed(std::exp(result.nll), 2) +
            (result.bleu >= 0 ? ", BLEU " + fixed(result.bleu, 1) : "") +
            (improved ? " (best so far)" : ""));
}

bool Trainer::save_due() const {
  if (state_.step == 0 || saved_step_ == state_.step) return false;
  const bool new_best = setup_.train.keep_best > 0 && state_.validated_step == state_.step &&
                        state_.best_step() == state_.step;
  return new_best || state_.step % setup_.train.save_every == 0;
}

void Trainer::save() {
  observer_->activity("saving");
  checkpointer_.save(arena_, *optimizer_, state_);
  saved_step_ = state_.step;  // also after a failure: the next try is at the next interval
  observer_->activity("");
}

std::optional<std::string> Trainer::stop_reason() const {
  const auto& train = setup_.train;
  if (train.max_steps > 0 && state_.step >= train.max_steps) return "train.max_steps reached";
  if (train.max_epochs > 0 && state_.epoch >= train.max_epochs) return "train.max_epochs reached";
  if (train.max_hours > 0 && state_.seconds >= train.max_hours * 3600) {
    return "train.max_hours reached";
  }
  if (train.patience > 0 && state_.bad_validations >= train.patience) {
    return "no better validation in " + std::to_string(train.patience) + " (train.patience)";
  }
  return std::nullopt;
}

ExitCode Trainer::leave_interrupted() {
  if (saved_step_ != state_.step && state_.step > 0) save();
  const bool failed = checkpointer_.last_save_failed();
  observer_->finish("stopped by a signal at step " + with_thousands(state_.step));
  log::info((failed ? "stopped at step " : "saved and stopped at step ") +
            with_thousands(state_.step) + "; the same command goes on from there");
  return failed ? ExitCode::kIo : ExitCode::kInterrupted;
}

ExitCode Trainer::finish(const std::string& reason) {
  if (task_.can_validate() && state_.step > 0 && state_.validated_step != state_.step) validate();
  if (saved_step_ != state_.step && state_.step > 0) save();
  if (setup_.train.average_last > 0 && !checkpointer_.last_save_failed()) average();
  report::MetricsEvent event{.step = state_.step, .epoch = state_.epoch + 1, .event = "end"};
  event.seconds = state_.seconds;
  event.peak_memory_bytes = static_cast<int64_t>(peak_rss_bytes());
  event.weights_hash = hex64(arena_.weights_hash());
  event.reason = reason;
  observer_->event(event);
  observer_->finish("finished: " + reason);
  log::info("finished at step " + with_thousands(state_.step) + ": " + reason);
  return checkpointer_.last_save_failed() ? ExitCode::kIo : ExitCode::kOk;
}

void Trainer::average() {
  const auto path = average_last_checkpoints(setup_.run_directory, setup_.train.average_last,
                                             setup_.identity, "averaged");
  log::info("mean of the last checkpoints: " + path.filename().string());
}

}  // namespace stretto::train
