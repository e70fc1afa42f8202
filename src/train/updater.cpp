#include "train/updater.h"

#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/random.h"
#include "base/random_streams.h"
#include "base/text.h"
#include "distributed/numbers.h"
#include "kernels/compute.h"
#include "kernels/kernels.h"
#include "nn/merged_matrices.h"
#include "optim/gradient_noise.h"
#include "parallel/tensor_buffer.h"

namespace stretto::train {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kMostSplits = 8;  // of an update, for each of its micro-batches

// Parts of a micro-batch make the same update but for rounding: not the same bits, and not where
// its samples are tied.
bool may_cut(const UpdaterSetup& setup, TiedBy tied) {
  return !setup.dist.deterministic && tied == TiedBy::kNothing;
}

// The optimizer of a slice, for an arena that knows which matrices merge several maps.
std::unique_ptr<optim::Optimizer> optimizer_of(const torch::nn::Module& model, optim::Arena& arena,
                                               const optim::OptimOptions& options,
                                               optim::Slice owned) {
  for (auto& [matrix, rows] : nn::merged_matrices(model)) {
    arena.set_part_rows(matrix, std::move(rows));
  }
  return optim::make_optimizer(options, arena, owned);
}

}  // namespace

/// One attempt on this rank.
struct Updater::Attempt {
  parallel::RankResult rank_result;
  std::optional<Error> why_late;  // of this rank's own gradient; the others only hear that it is
};

Updater::Updater(Task& task, optim::Arena& arena, distributed::ProcessGroup group,
                 UpdaterSetup setup)
    : task_(task),
      arena_(arena),
      group_(std::move(group)),
      setup_(std::move(setup)),
      tied_(samples_tied_by(task_)),
      share_{.update_freq = setup_.train.update_freq,
             .rank = group_.rank(),
             .size = group_.size(),
             .cut = may_cut(setup_, tied_)},
      backward_failpoint_(arena_),
      reducer_(arena_, group_, setup_.dist),
      statistics_(
          task_.model(), group_,
          {.synchronised = setup_.dist.batch_norm == "all", .ordered = setup_.dist.deterministic}),
      carry_(task_.carry(), group_),
      optimizer_(optimizer_of(task_.model(), arena_, setup_.optim, reducer_.owned())),
      masks_(setup_.compress.prune, arena_),
      prunings_(setup_.compress.prune),
      state_(group_, {.sliced = setup_.dist.strategy == "sharded" && share_.size > 1,
                      .slice_begins = reducer_.slice_begins(),
                      .owned = reducer_.owned(),
                      .chunk = setup_.state_chunk}),
      scaler_(optim::loss_scaler_for(setup_.precision, setup_.train.loss_scale,
                                     setup_.train.update_freq)),
      update_batches_(task_.train_batches(), share_, setup_.loading,
                      preparation_of(task_, arena_.params().device())),
      sums_(task_) {
  if (setup_.train.averages_weights()) {
    average_ = std::make_unique<optim::WeightAverage>(
        optim::AverageRule{.decay = setup_.train.ema_decay,
                           .warm_up = setup_.train.ema_warmup,
                           .is_mean = setup_.train.average_nonmono > 0},
        arena_, reducer_.owned());
  }
  if (setup_.optim.weight_noise > 0) {
    weight_noise_ = std::make_unique<optim::WeightNoise>(setup_.optim, arena_);
  }
  if (setup_.compress.quantise.quantises()) {
    rounded_weights_ = std::make_unique<compress::RoundedWeights>(setup_.compress.quantise, arena_);
  }
  reducer_.watch_embeddings(task_.model());
  TORCH_CHECK(carry_.empty() || task_.train_batches().order() == data::Order::kLanes,
              "[task] a state of lanes needs batches of data::Order::kLanes");
  seek({});
}

Updater::~Updater() = default;

std::vector<optim::StateTensor> Updater::state() const {
  auto tensors = optimizer_->state();
  if (average_) tensors.push_back({optim::kWeightAverage, average_->values()});
  for (const auto& state : carry_.states()) {
    tensors.push_back({.name = "carry/" + state.name, .values = state.values, .flat = false});
  }
  return tensors;
}

int64_t Updater::state_bytes() const {
  int64_t bytes = 0;
  for (const auto& tensor : state()) {
    bytes += tensor.values.numel() * tensor.values.element_size();
  }
  return bytes;
}

bool Updater::train_after(int64_t updates) {
  completed_ = updates;
  if (arena_.train_after(updates)) reducer_.learn_order_anew();
  return prune_after(updates);
}

// Before an update, when all ranks have the same weights. An update that was left out comes here
// again, and changes nothing.
bool Updater::prune_after(int64_t updates) {
  const int64_t number = prunings_.pruning_after(updates);
  if (number == 0 || !masks_.prune(arena_, prunings_.sparsity_of(number), updates)) return false;
  for (const auto& tensor : state()) masks_.apply(tensor, reducer_.owned());
  if (!group_.is_root()) return true;
  log::info("after " + counted(updates, "update") + ": pruned to " +
            percent_text(masks_.sparsity()) + " zeros, " + with_thousands(masks_.num_pruned()) +
            " of " + with_thousands(masks_.num_prunable()) + " weights");
  return true;
}

std::vector<std::string> Updater::set_masks(const compress::PackedMasks& masks) {
  return masks_.set(masks, arena_.params().device());
}

// What a pruned weight would get, in the sum over ranks.
void Updater::hold_gradients() {
  if (!masks_.any()) return;
  const auto owned = reducer_.owned();
  masks_.apply(arena_.grads().narrow(0, owned.begin, owned.size()), owned);
}

StepContext Updater::context_of(int64_t update) const {
  return {.seed = static_cast<uint64_t>(setup_.run.seed),
          .update = update,
          .carry = carry_.empty() ? nullptr : &carry_};
}

const parallel::Carry& Updater::gather_carry() {
  carry_.gather();
  return carry_;
}

// Forward and backward.
void Updater::run_micro_batch(int64_t part, int64_t update, parallel::RankResult& rank_result) {
  failpoint("micro_batch");
  const Prepared& prepared = update_batches_.on_device(part);
  const data::Batch& batch = prepared;
  const kernels::ComputeScope scope(setup_.precision.compute);
  const Sums sums = task_.loss(prepared, context_of(update));
  if (!carry_.empty()) carry_.propose(batch.lanes, sums.carry);
  const at::Tensor minimised = objective(sums.losses, divisors_);
  const double scale = scaler_->scale();
  if (sums.losses.size() > 1 && !minimised.requires_grad()) {
    // Whatever leads to the losses of this micro-batch is frozen; others may train.
  } else if (scale == 1) {
    minimised.backward();
  } else {
    minimised.backward(torch::full_like(minimised, scale));
  }
  const int64_t micro = update_batches_.slices()[static_cast<size_t>(part)].micro;
  const auto turn = static_cast<size_t>(micro / share_.size);
  sums_.add(turn, sums, task_.weights(batch), rank_result);
}

// One loss is divided after the sum; several have to be before, each by its own weight.
void Updater::divide_by_totals() {
  divisors_ = divisors_of(task_, batches());
  if (!divisors_.empty()) distributed::sum_numbers(group_, divisors_);
}

// What is left to divide the arena's gradients by.
double Updater::divisor(const Totals& totals) const {
  return sums_.num_losses() == 1 ? totals.weights.front() : 1;
}

// As a sum over what the first loss is divided by.
optim::GradientPart Updater::gradient_part(double weight, double sum_norm_sq) const {
  const double divided_by = sums_.num_losses() == 1 ? 1 : divisors_.front();
  return {.weight = weight, .sum_norm_sq = sum_norm_sq * divided_by * divided_by};
}

// The first micro-batch is the small batch of the noise scale, where it is not cut.
bool Updater::measures_small_batch() const {
  return setup_.train.noise_scale && task_.has_all_losses_together() && group_.is_root() &&
         !update_batches_.slices().empty() && update_batches_.slices().front().is_whole();
}

void Updater::run_part(int64_t part, int64_t update, int64_t count,
                       parallel::RankResult& rank_result) {
  group_.check_peers();
  reducer_.before_backward(part);
  statistics_.before_micro_batch(part);
  run_micro_batch(part, update, rank_result);
  // To measure the first one costs a pass. When it is this rank's only one the reducer does it,
  // unless it keeps micro-batches apart.
  const bool stands_alone = batches().size() > 1 || setup_.dist.deterministic;
  if (part == 0 && count > 1 && stands_alone && measures_small_batch()) {
    masks_.apply(arena_.grads());
    rank_result.small = gradient_part(sums_.first_weight(rank_result.micros[0]),
                                      kernels::sum_of_squares(arena_.grads()));
  }
  reducer_.after_backward(part);
}

Updater::Attempt Updater::attempt(int64_t update, int64_t count) {
  Attempt made;
  const auto parts = static_cast<int64_t>(batches().size());
  made.rank_result = sums_.begin(static_cast<size_t>(share_.of_update(count)));
  // The reducer does not know what is pruned: then one micro-batch a rank gives no noise scale.
  reducer_.measure_local(parts == 1 && measures_small_batch() && !masks_.any());
  reducer_.begin(parts);
  statistics_.begin(count);
  int64_t part = 0;
  try {
    for (; part < parts; ++part) run_part(part, update, count, made.rank_result);
  } catch (const std::exception& error) {
    if (!parallel::is_out_of_memory(error)) throw;
    give_up(part, update, made.rank_result);
    return made;
  }
  statistics_.end();
  sums_.read(made.rank_result);
  finish(made);
  return made;
}

void Updater::give_up(int64_t part, int64_t update, parallel::RankResult& rank_result) {
  // The others wait for numbers of this micro-batch, which will never come.
  if (statistics_.is_synchronised()) throw no_memory(update, /*split=*/0);
  const int64_t samples = batches()[static_cast<size_t>(part)].batch().num_sequences();
  const TaskWords words = task_.words();
  rank_result.failed_part = part;
  rank_result.can_split = samples > 1;
  reducer_.abandon();  // before the line below, which needs memory too: the others wait
  log::warn("update " + std::to_string(update + 1) + ": no memory for a micro-batch of " +
            counted(samples, words.sample, words.samples));
}

void Updater::finish(Attempt& made) {
  try {
    reducer_.finish();
  } catch (const Error& error) {  // its collectives are done; all ranks are to hear of it
    if (error.code() != ExitCode::kUsage) throw;
    made.rank_result.late = true;
    made.why_late = error;
  }
  // With several processes of one micro-batch each, rank 0's is the small batch.
  if (batches().size() == 1 && reducer_.local_sum_of_squares() > 0) {
    made.rank_result.small = gradient_part(sums_.first_weight(made.rank_result.micros[0]),
                                           reducer_.local_sum_of_squares());
  }
}

Error Updater::no_memory(int64_t update, int64_t split) const {
  const std::string how = tied_ != TiedBy::kNothing
                              ? std::string(", which is not split, since ") + reason_of(tied_)
                              : ", split " + counted(split, "time");
  return {ExitCode::kOutOfMemory,
          "update " + std::to_string(update + 1) + ": there is no memory for a micro-batch" + how,
          task_.words().smaller_batches};
}

// Until all ranks had the memory.
parallel::RankResults Updater::attempts(int64_t update, const std::function<int()>& stop,
                                        UpdateResult& result) {
  for (;; ++result.split) {
    Attempt made = attempt(update, result.micro_batches);
    made.rank_result.stop = stop();
    parallel::RankResults all =
        parallel::RankResults::exchange(group_, share_, result.micro_batches, made.rank_result);
    if (made.why_late) throw Error(*made.why_late);
    if (const auto rank = all.late_rank()) {
      throw Error(ExitCode::kUsage,
                  "dist.overlap: a gradient of rank " + std::to_string(*rank) +
                      " changed after it had been sent",
                  "set dist.overlap = false for this model");
    }
    result.stop = std::max(result.stop, all.stop());
    if (!all.any_failed()) return all;
    if (all.is_hopeless() || result.split >= kMostSplits * result.micro_batches ||
        tied_ != TiedBy::kNothing) {
      throw no_memory(update, result.split);
    }
    if (made.rank_result.failed_part >= 0) update_batches_.split(made.rank_result.failed_part);
  }
}

// What the micro-batches and the gradient of an update come to.
void Updater::sum_up(int64_t update, const parallel::RankResults& rank_results,
                     UpdateResult& result) {
  result.totals = sums_.totals(rank_results.in_order());
  hold_gradients();
  const double sum_sq = reducer_.sum_of_squares();
  result.grad_norm = std::sqrt(sum_sq) / (divisor(result.totals) * result.loss_scale);
  result.finite = std::isfinite(result.grad_norm) && std::isfinite(result.totals.loss());
  if (!result.finite) return;
  noise_.add(optim::norms_of_parts({&rank_results.small_batch(), 1},
                                   gradient_part(result.totals.weights.front(), sum_sq),
                                   result.loss_scale));
  if (scaler_->wants_max_abs()) result.max_abs = largest_gradient();
  if (setup_.optim.gradient_noise > 0) add_noise(update, result);
}

// Adds to the sum over ranks, as it stands in the arena: not divided, and scaled with the loss.
void Updater::add_noise(int64_t update, UpdateResult& result) {
  const auto& optim = setup_.optim;
  const double unit = divisor(result.totals) * result.loss_scale;
  const double deviation =
      optim::gradient_noise_deviation(optim.gradient_noise, optim.gradient_noise_decay, update);
  optim::add_gradient_noise(arena_, reducer_.owned(), key_of(update, streams::kGradientNoise),
                            deviation * unit, completed_);
  hold_gradients();
  result.grad_norm = std::sqrt(reducer_.sum_of_squares()) / unit;
}

optim::NoisyWeights Updater::noisy_weights(int64_t update) {
  if (rounded_weights_) {  // a rule forbids both
    return rounded_weights_->round(key_of(update, streams::kRoundedWeights), completed_);
  }
  if (!weight_noise_) return {};
  auto noisy = weight_noise_->add(key_of(update, streams::kWeightNoise), completed_);
  masks_.apply(arena_.params());
  return noisy;
}

optim::NoisyWeights Updater::rounded_weights(int64_t updates) {
  return rounded_weights_ ? rounded_weights_->round_all(updates) : optim::NoisyWeights();
}

uint64_t Updater::key_of(int64_t update, uint64_t purpose) const {
  const auto seed = static_cast<uint64_t>(setup_.run.seed);
  return mix64(mix64(seed, static_cast<uint64_t>(update)), purpose);
}

UpdateResult Updater::gradients(int64_t update, const std::function<int()>& stop) {
  const auto start = Clock::now();
  UpdateResult result;
  result.epoch = position().epoch + 1;
  result.loss_scale = scaler_->scale();
  result.micro_batches = update_batches_.load();
  result.data_wait_seconds = seconds_since(start);
  if (!carry_.empty()) carry_.begin(update_batches_.lanes());  // never done again: see TiedBy
  divide_by_totals();
  result.batch_hash = update_batches_.hash();
  task_.model().train();
  {
    const optim::NoisyWeights noisy = noisy_weights(update);
    sum_up(update, attempts(update, stop, result), result);
  }
  update_batches_.advance();
  result.seconds = seconds_since(start);
  return result;
}

void Updater::step(const UpdateResult& result, double lr, double clip, int64_t number) {
  statistics_.move();
  carry_.commit();
  // Slices are stepped by all ranks, empty ones too: layer-wise optimizers sum over ranks.
  optim::UpdateStep update{.lr = lr,
                           .grad_scale = clip / (divisor(result.totals) * result.loss_scale),
                           .number = number};
  if (setup_.dist.strategy == "sharded" && share_.size > 1) {
    update.sum_over_ranks = [this](std::span<double> values) {
      distributed::sum_numbers(group_, values);
    };
    update.slice_begins = reducer_.slice_begins();
    update.gather_over_ranks = [this](const torch::Tensor& values,
                                      std::span<const int64_t> begins) {
      group_.all_gather(parallel::buffer_of(values), begins);
    };
  }
  if (setup_.dist.strategy != "parameter_server" || group_.is_root()) {
    optimizer_->step(arena_, update);
  }
  masks_.apply(arena_.params());
  if (average_) average_->update(arena_, number);
  reducer_.publish();
}

void Updater::average_after(std::optional<int64_t> updates) {
  if (average_) average_->mean_after(updates);
}

std::unique_ptr<optim::KeptWeights> Updater::use_average() {
  if (!average_) return nullptr;
  auto kept = std::make_unique<optim::KeptWeights>(arena_);
  const torch::NoGradGuard no_grad;
  const auto owned = reducer_.owned();
  arena_.params().narrow(0, owned.begin, owned.size()).copy_(average_->values());
  reducer_.publish();
  return kept;
}

// The largest magnitude in the sum over micro-batches, as it stands in the arena.
double Updater::largest_gradient() {
  const auto owned = reducer_.owned();
  double largest = 0;
  if (owned.size() > 0) {
    const auto [low, high] = at::aminmax(arena_.grads().narrow(0, owned.begin, owned.size()));
    largest = std::max(-low.item<double>(), high.item<double>());
  }
  std::vector<double> all(static_cast<size_t>(share_.size));
  all[static_cast<size_t>(share_.rank)] = largest;
  distributed::gather_numbers(group_, all);
  return *std::max_element(all.begin(), all.end());
}

void Updater::scaled(const UpdateResult& result) {
  optim::ScaledStep step{.overflow = !result.finite};
  if (result.finite && scaler_->wants_max_abs()) {
    step.max_abs = result.max_abs / (result.loss_scale * static_cast<double>(result.micro_batches));
  }
  scaler_->update(step);
}

std::vector<optim::StateTensor> Updater::empty_state() {
  return state_.empty(state());
}

std::vector<optim::StateTensor> Updater::gather_state() {
  carry_.gather();
  return state_.gather(state());
}

void Updater::scatter_state(const std::vector<optim::StateTensor>& tensors) {
  state_.scatter(tensors, state());
}

void Updater::broadcast_parameters() {
  group_.broadcast(parallel::buffer_of(arena_.params()));
  for (const auto& buffer : arena_.buffers()) group_.broadcast(parallel::buffer_of(buffer.values));
  if (average_) average_->begin(arena_);
}

}  // namespace stretto::train
