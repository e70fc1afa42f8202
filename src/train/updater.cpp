#include "train/updater.h"

#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "base/hash.h"
#include "base/log.h"
#include "dist/numbers.h"
#include "kernels/compute.h"
#include "kernels/kernels.h"
#include "nn/batch_norm.h"

namespace stretto::train {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kMostSplits = 8;  // of an update, for each of its micro-batches

/// What each rank tells the others of one attempt: kHead numbers and kEach for every micro-batch.
enum Head : int64_t { kFailedPart, kCanSplit, kStop, kLate, kSmallTokens, kSmallNorm, kHead };
enum Each : int64_t { kLoss, kNll, kTarget, kSource, kEach };

dist::Buffer floats(torch::Tensor& tensor) {
  return {.data = tensor.data_ptr(), .count = tensor.numel(), .element = dist::Element::kF32};
}

// Parts of a micro-batch make the same update but for rounding: not the same bits, and not with
// batch norms, whose statistics are those of a whole one.
bool may_cut(const UpdaterSetup& setup, torch::nn::Module& model) {
  return !setup.dist.deterministic && nn::batch_norms(model).empty();
}

}  // namespace

struct Updater::Micro {
  double loss = 0, nll = 0;
  int64_t target = 0, source = 0;
};

/// One attempt on this rank.
struct Updater::Outcome {
  std::vector<Micro> micros;  // of this rank, in order
  int64_t failed_part = -1;   // the part for which there was no memory
  std::optional<Error> late;  // a gradient changed after it had been sent
  optim::GradientPart small;  // the small batch of the noise scale; only rank 0 has one
};

Updater::Updater(Task& task, optim::Arena& arena, dist::ProcessGroup group, UpdaterSetup setup)
    : task_(task),
      arena_(arena),
      group_(std::move(group)),
      setup_(std::move(setup)),
      share_{.update_freq = setup_.train.update_freq,
             .rank = group_.rank(),
             .size = group_.size(),
             .cut = may_cut(setup_, task_.model())},
      backward_failpoint_(arena_),
      reducer_(arena_, group_, setup_.dist),
      statistics_(
          task_.model(), group_,
          {.synchronised = setup_.dist.batch_norm == "all", .ordered = setup_.dist.deterministic}),
      optimizer_(optim::make_optimizer(setup_.optim, arena_, reducer_.owned())),
      scaler_(optim::loss_scaler_for(setup_.precision, setup_.train.loss_scale,
                                     setup_.train.update_freq)) {
  reducer_.watch_embeddings(task_.model());
  seek({});
}

Updater::~Updater() = default;

int64_t Updater::state_bytes() const {
  int64_t bytes = 0;
  for (const auto& piece : optimizer_->state()) {
    bytes += piece.values.numel() * piece.values.element_size();
  }
  return bytes;
}

void Updater::seek(data::Position position) {
  position_ = position;
  prefetcher_ = std::make_unique<data::Prefetcher>(task_.train_batches(), position, setup_.prefetch,
                                                   /*threads=*/1, share_);
}

data::Share Updater::share_of(int64_t rank) const {
  data::Share share = share_;
  share.rank = rank;
  return share;
}

// This rank's micro-batches of the update of `count` that begins at position_.
void Updater::load(int64_t count) {
  batches_.clear();
  pieces_.clear();
  for (int64_t turn = 0; turn < share_.of_update(count); ++turn) {
    const data::Piece piece = share_.piece(turn, count);
    data::Batch batch = prefetcher_->next();
    if (!piece.is_whole()) batch = data::even_part(batch, piece.part, piece.parts);
    if (batch.num_sequences() == 0) continue;
    batches_.push_back(std::move(batch));
    pieces_.push_back(piece);
  }
}

std::vector<data::Position> Updater::positions() const {
  std::vector<data::Position> places;
  for (const auto& piece : pieces_) places.push_back({first_.epoch, first_.index + piece.micro});
  return places;
}

uint64_t Updater::batch_hash(int64_t count) const {
  std::vector<const data::Batch*> here(static_cast<size_t>(count));
  for (size_t i = 0; i < pieces_.size(); ++i) {
    if (pieces_[i].is_whole()) here[static_cast<size_t>(pieces_[i].micro)] = &batches_[i];
  }
  Xxh3Stream hash;
  const auto add = [&](const std::vector<int64_t>& ids) {
    hash.update(ids.data(), ids.size() * sizeof(int64_t));
  };
  for (int64_t micro = 0; micro < count; ++micro) {
    const data::Batch* batch = here[static_cast<size_t>(micro)];
    if (batch != nullptr) {
      add(batch->sample_ids);
    } else {
      add(task_.train_batches().sample_ids(position_.epoch, position_.index + micro));
    }
  }
  return hash.digest();
}

void Updater::run_micro_batch(const data::Batch& batch, int64_t update, Micro& micro) {
  failpoint("micro_batch");
  const kernels::ComputeScope scope(setup_.precision.compute);
  const MicroLoss loss = task_.loss(batch, {static_cast<uint64_t>(setup_.run.seed), update});
  const double scale = scaler_->scale();
  if (scale == 1) {
    loss.loss_sum.backward();
  } else {
    loss.loss_sum.backward(torch::full_like(loss.loss_sum, scale));
  }
  micro.loss += loss.loss_sum.item<double>();
  micro.nll += loss.nll_sum;
  micro.target += loss.target_tokens;
  micro.source += loss.source_tokens;
}

Updater::Outcome Updater::attempt(int64_t update, int64_t count) {
  Outcome outcome;
  const auto parts = static_cast<int64_t>(batches_.size());
  outcome.micros.resize(static_cast<size_t>(share_.of_update(count)));
  const bool measures = setup_.train.noise_scale && group_.is_root() && !pieces_.empty() &&
                        pieces_.front().is_whole();
  reducer_.measure_local(parts == 1 && measures);
  reducer_.begin(parts);
  statistics_.begin(count);
  int64_t part = 0;
  try {
    for (; part < parts; ++part) {
      const auto at = static_cast<size_t>(part);
      reducer_.before_backward(part);
      statistics_.before_micro_batch(part);
      const int64_t turn = pieces_[at].micro / share_.size;
      run_micro_batch(batches_[at], update, outcome.micros[static_cast<size_t>(turn)]);
      // The first micro-batch alone is the small batch of the noise scale; it costs one pass. When
      // it is this rank's only one the reducer measures it, unless it keeps micro-batches apart.
      const bool alone = parts > 1 || setup_.dist.deterministic;
      if (part == 0 && count > 1 && alone && measures) {
        outcome.small = {.tokens = static_cast<double>(outcome.micros[0].target),
                         .sum_norm_sq = kernels::sum_of_squares(arena_.grads())};
      }
      reducer_.after_backward(part);
    }
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    // The others wait for numbers of this very micro-batch, which never come.
    if (statistics_.is_synchronised()) throw no_memory(update, /*split=*/0);
    outcome.failed_part = part;
    reducer_.abandon();  // before the line below, which needs memory too: the others wait
    log::warn("update " + std::to_string(update + 1) + ": no memory for a micro-batch of " +
              std::to_string(batches_[static_cast<size_t>(part)].num_sequences()) + " sentences");
    return outcome;
  }
  statistics_.end();
  try {
    reducer_.finish();
  } catch (const Error& error) {  // its collectives are done; all ranks are to hear of it
    if (error.code() != ExitCode::kUsage) throw;
    outcome.late = error;
  }
  // Of several processes with one micro-batch each, rank 0's is the small batch.
  if (parts == 1 && reducer_.local_sum_of_squares() > 0) {
    outcome.small = {.tokens = static_cast<double>(outcome.micros[0].target),
                     .sum_norm_sq = reducer_.local_sum_of_squares()};
  }
  return outcome;
}

// All ranks' reports, one after the other.
std::vector<double> Updater::exchange(const Outcome& outcome, int64_t count, int stop) {
  const int64_t width = kHead + kEach * share_of(0).of_update(count);
  std::vector<double> table(static_cast<size_t>(width * share_.size));
  double* const mine = table.data() + width * share_.rank;
  mine[kFailedPart] = static_cast<double>(outcome.failed_part);
  if (outcome.failed_part >= 0) {
    mine[kCanSplit] =
        batches_[static_cast<size_t>(outcome.failed_part)].num_sequences() > 1 ? 1 : 0;
  }
  mine[kStop] = stop;
  mine[kLate] = outcome.late ? 1 : 0;
  mine[kSmallTokens] = outcome.small.tokens;
  mine[kSmallNorm] = outcome.small.sum_norm_sq;
  double* each = mine + kHead;
  for (const Micro& micro : outcome.micros) {
    each[kLoss] = micro.loss;
    each[kNll] = micro.nll;
    each[kTarget] = static_cast<double>(micro.target);
    each[kSource] = static_cast<double>(micro.source);
    each += kEach;
  }
  dist::gather_numbers(group_, table);
  return table;
}

// The micro-batches of the update from all ranks' reports, whoever had them.
std::vector<Updater::Micro> Updater::in_order(const std::vector<double>& table,
                                              int64_t count) const {
  std::vector<Micro> micros(static_cast<size_t>(count));
  const auto width = static_cast<int64_t>(table.size()) / share_.size;
  for (data::Share share = share_of(0); share.rank < share.size; ++share.rank) {
    const double* each = table.data() + width * share.rank + kHead;
    for (int64_t turn = 0; turn < share.of_update(count); ++turn, each += kEach) {
      Micro& micro = micros[static_cast<size_t>(share.piece(turn, count).micro)];
      micro.loss += each[kLoss];
      micro.nll += each[kNll];
      micro.target += static_cast<int64_t>(each[kTarget]);
      micro.source += static_cast<int64_t>(each[kSource]);
    }
  }
  return micros;
}

Error Updater::no_memory(int64_t update, int64_t split) const {
  const bool batch_norms = !statistics_.empty();
  const std::string how = batch_norms ? ", which is not split, since batch norm would make another "
                                        "update of it"
                                      : ", split " + std::to_string(split) + " times";
  return {
      ExitCode::kOutOfMemory,
      "update " + std::to_string(update + 1) + ": there is no memory for a micro-batch" + how,
      "lower data.max_tokens (raise train.update_freq by the same factor to keep the batch), or "
      "data.max_src_tokens and data.max_tgt_tokens"};
}

UpdateResult Updater::gradients(int64_t update, const std::function<int()>& stop) {
  const auto start = Clock::now();
  UpdateResult result;
  const int64_t num_batches = task_.train_batches().num_batches();
  const int64_t count = std::min(share_.update_freq, num_batches - position_.index);
  first_ = position_;
  result.epoch = position_.epoch + 1;
  result.micro_batches = count;
  result.loss_scale = scaler_->scale();
  load(count);
  result.batch_hash = batch_hash(count);
  task_.model().train();

  std::vector<double> table;
  for (;; ++result.split) {
    const Outcome outcome = attempt(update, count);
    table = exchange(outcome, count, stop());
    const auto width = static_cast<int64_t>(table.size()) / share_.size;
    bool failed = false, hopeless = false;
    if (outcome.late) throw Error(*outcome.late);
    for (int64_t r = 0; r < share_.size; ++r) {
      const double* row = table.data() + r * width;
      failed = failed || row[kFailedPart] >= 0;
      hopeless = hopeless || (row[kFailedPart] >= 0 && row[kCanSplit] == 0);
      if (row[kLate] != 0) {
        throw Error(ExitCode::kUsage,
                    "dist.overlap: a gradient of rank " + std::to_string(r) +
                        " changed after it had been sent",
                    "set dist.overlap = false for this model");
      }
      result.stop = std::max(result.stop, static_cast<int>(row[kStop]));
    }
    if (!failed) break;
    if (hopeless || result.split >= kMostSplits * count || !statistics_.empty()) {
      throw no_memory(update, result.split);
    }
    if (outcome.failed_part >= 0) {
      const auto at = static_cast<size_t>(outcome.failed_part);
      const data::Batch whole = std::move(batches_[at]);
      const int64_t half = whole.num_sequences() / 2;
      batches_[at] = data::part(whole, 0, half);
      batches_.insert(batches_.begin() + outcome.failed_part + 1,
                      data::part(whole, half, whole.num_sequences()));
      const data::Piece piece = pieces_[at];
      pieces_.insert(pieces_.begin() + outcome.failed_part + 1, piece);
    }
  }

  for (const Micro& micro : in_order(table, count)) {
    result.loss_sum += micro.loss;
    result.nll_sum += micro.nll;
    result.target_tokens += micro.target;
    result.source_tokens += micro.source;
  }
  const auto tokens = static_cast<double>(result.target_tokens);
  const double sum_sq = reducer_.sum_of_squares();
  result.grad_norm = std::sqrt(sum_sq) / (tokens * result.loss_scale);
  result.finite = std::isfinite(result.grad_norm) && std::isfinite(result.loss_sum);
  if (result.finite) {
    const optim::GradientPart small{.tokens = table[kSmallTokens],
                                    .sum_norm_sq = table[kSmallNorm]};
    noise_.add(optim::norms_of_parts({&small, 1}, {.tokens = tokens, .sum_norm_sq = sum_sq},
                                     result.loss_scale));
  }
  position_.index += count;
  if (position_.index == num_batches) position_ = {.epoch = position_.epoch + 1, .index = 0};
  result.seconds = seconds_since(start);
  return result;
}

void Updater::step(const UpdateResult& result, double lr, double clip, int64_t number) {
  statistics_.move();
  // Slices are stepped by all ranks, empty ones too: layer-wise optimizers sum over ranks.
  optim::SumOverRanks sum_over_ranks;
  if (setup_.dist.strategy == "sharded" && share_.size > 1) {
    sum_over_ranks = [this](std::span<double> values) { dist::sum_numbers(group_, values); };
  }
  if (setup_.dist.strategy != "parameter_server" || group_.is_root()) {
    optimizer_->step(arena_, {.lr = lr,
                              .grad_scale = clip / (static_cast<double>(result.target_tokens) *
                                                    result.loss_scale),
                              .number = number,
                              .sum_over_ranks = sum_over_ranks});
  }
  reducer_.publish();
}

// Of the sum over micro-batches, as it stands in the arena.
double Updater::largest_gradient() {
  const auto owned = reducer_.owned();
  double largest = 0;
  if (owned.size() > 0) {
    const auto [low, high] = at::aminmax(arena_.grads().narrow(0, owned.begin, owned.size()));
    largest = std::max(-low.item<double>(), high.item<double>());
  }
  std::vector<double> all(static_cast<size_t>(share_.size));
  all[static_cast<size_t>(share_.rank)] = largest;
  dist::gather_numbers(group_, all);
  return *std::max_element(all.begin(), all.end());
}

void Updater::scaled(const UpdateResult& result) {
  optim::ScaledStep step{.overflow = !result.finite};
  if (result.finite && scaler_->wants_max_abs()) {
    step.max_abs =
        largest_gradient() / (result.loss_scale * static_cast<double>(result.micro_batches));
  }
  scaler_->update(step);
}

std::vector<optim::StatePiece> Updater::empty_state() {
  std::vector<optim::StatePiece> pieces;
  for (const auto& piece : optimizer_->state()) {
    pieces.push_back({.name = piece.name,
                      .values = piece.flat ? torch::zeros({arena_.size()}, torch::kFloat32)
                                           : torch::zeros_like(piece.values, torch::kCPU),
                      .flat = piece.flat});
  }
  return pieces;
}

std::vector<optim::StatePiece> Updater::gather_state() {
  auto mine = optimizer_->state();
  if (setup_.dist.strategy != "sharded" || share_.size == 1) {
    return group_.is_root() ? mine : std::vector<optim::StatePiece>{};
  }
  std::vector<optim::StatePiece> pieces;
  for (auto& piece : mine) {
    if (!piece.flat) {  // the same on every rank
      if (group_.is_root()) pieces.push_back(piece);
      continue;
    }
    const at::Tensor whole = gather_whole(piece.values);
    if (group_.is_root()) pieces.push_back({piece.name, whole, true});
  }
  return pieces;
}

// Turn by turn a part of each rank's slice, so that all have something to send. Undefined on other
// ranks than 0.
at::Tensor Updater::gather_whole(const at::Tensor& mine) {
  const auto& slices = reducer_.slice_begins();
  const auto size = static_cast<size_t>(share_.size), rank = static_cast<size_t>(share_.rank);
  const int64_t each = std::max<int64_t>(1, setup_.state_chunk / share_.size);
  int64_t longest = 0;
  for (size_t r = 0; r < size; ++r) longest = std::max(longest, slices[r + 1] - slices[r]);
  at::Tensor whole;
  if (group_.is_root()) whole = at::zeros({arena_.size()}, mine.options());
  at::Tensor room = at::empty({std::min(each, longest) * share_.size}, mine.options());
  for (int64_t first = 0; first < longest; first += each) {
    std::vector<int64_t> begins{0};
    for (size_t r = 0; r < size; ++r) {
      const int64_t left = slices[r + 1] - slices[r] - first;
      begins.push_back(begins.back() + std::clamp<int64_t>(left, 0, each));
    }
    const auto part = [&](size_t r) {
      return room.narrow(0, begins[r], begins[r + 1] - begins[r]);
    };
    if (const int64_t count = begins[rank + 1] - begins[rank]; count > 0) {
      part(rank).copy_(mine.narrow(0, first, count));
    }
    at::Tensor sent = room.narrow(0, 0, begins.back());
    group_.all_gather(floats(sent), begins);
    for (size_t r = 0; whole.defined() && r < size; ++r) {
      const int64_t count = begins[r + 1] - begins[r];
      if (count > 0) whole.narrow(0, slices[r] + first, count).copy_(part(r));
    }
  }
  return whole;
}

// `whole` only matters on rank 0.
void Updater::scatter_whole(const at::Tensor& whole, at::Tensor& mine) {
  const auto owned = reducer_.owned();
  const int64_t each = std::min(std::max<int64_t>(1, setup_.state_chunk), arena_.size());
  at::Tensor room = at::empty({each}, mine.options());
  for (int64_t first = 0; first < arena_.size(); first += each) {
    const int64_t count = std::min(each, arena_.size() - first);
    at::Tensor sent = room.narrow(0, 0, count);
    if (group_.is_root()) sent.copy_(whole.narrow(0, first, count));
    group_.broadcast(floats(sent));
    const int64_t from = std::max(first, owned.begin);
    const int64_t to = std::min(first + count, owned.end);
    if (from >= to) continue;
    mine.narrow(0, from - owned.begin, to - from).copy_(sent.narrow(0, from - first, to - from));
  }
}

void Updater::scatter_state(const std::vector<optim::StatePiece>& pieces) {
  torch::NoGradGuard no_grad;
  size_t next = 0;
  for (auto& piece : optimizer_->state()) {
    const at::Tensor given = group_.is_root() ? pieces.at(next).values : at::Tensor();
    ++next;
    if (piece.flat) {
      scatter_whole(given, piece.values);
      continue;
    }
    auto whole = torch::zeros_like(piece.values, torch::kCPU);
    if (given.defined()) whole.copy_(given);
    // A few numbers in host memory, which not every group can broadcast.
    const auto* begin = reinterpret_cast<const char*>(whole.const_data_ptr<float>());
    const std::string mine = group_.is_root() ? std::string(begin, whole.nbytes()) : "";
    const auto bytes = group_.all_gather_bytes(mine).front();
    TORCH_CHECK(bytes.size() == whole.nbytes(), "[updater] state `", piece.name, "` has ",
                bytes.size(), " bytes, expected ", whole.nbytes());
    std::memcpy(whole.data_ptr<float>(), bytes.data(), bytes.size());
    piece.values.copy_(whole);
  }
}

void Updater::broadcast_parameters() {
  group_.broadcast(floats(arena_.params()));
  for (const auto& buffer : arena_.buffers()) {
    at::Tensor values = buffer.values;
    group_.broadcast(floats(values));
  }
}

}  // namespace stretto::train
