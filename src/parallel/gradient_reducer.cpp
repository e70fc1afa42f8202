#include "parallel/gradient_reducer.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "kernels/kernels.h"
#include "parallel/bucket_sender.h"
#include "parallel/buckets.h"
#include "parallel/communication_thread.h"
#include "parallel/embedding_gradients.h"
#include "parallel/ordered_sum.h"
#include "parallel/out_of_memory.h"
#include "parallel/ready_watch.h"
#include "parallel/tensor_buffer.h"

namespace stretto::parallel {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kAlignment = 16;                  // elements, as the arena's
constexpr int64_t kSmallTensor = int64_t{1} << 14;  // elements: 64 KiB in fp32

// Numbers as bytes and back, for all_gather_bytes.
template <class Number>
std::string as_bytes(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

template <class Number>
std::vector<Number> from_bytes(const std::string& bytes) {
  std::vector<Number> numbers(bytes.size() / sizeof(Number));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(Number));
  return numbers;
}

// The tensors' places, each with the gap behind it, so that neighbours touch.
std::vector<Range> extents_of(const optim::Arena& arena) {
  std::vector<Range> extents;
  for (const auto& slot : arena.slots()) {
    if (!extents.empty()) extents.back().end = slot.offset;
    extents.push_back({slot.offset, arena.size()});
  }
  return extents;
}

std::vector<size_t> reverse_order(size_t count) {
  std::vector<size_t> order(count);
  std::iota(order.rbegin(), order.rend(), size_t{0});
  return order;
}

// When a bucket was on its way.
struct Sending {
  Clock::time_point begin, end;
};

}  // namespace

/// One update passes through: idle -> (micro-batches) -> last backward, in which tensors become
/// ready and buckets leave -> flushed.
struct GradientReducer::Impl {
  Impl(optim::Arena& arena, distributed::ProcessGroup group,
       const distributed::DistOptions& options);

  bool alone() const { return group_.size() == 1; }
  bool learns() const { return watch_ != nullptr && !readiness_; }
  bool is_last(int64_t i) const { return i + 1 == micro_batches_; }
  optim::Slice owned() const;

  void begin(int64_t micro_batches);
  void before_backward(int64_t i);
  void after_backward(int64_t i);
  void publish();
  void complete();
  void complete_now();
  double sent_before(Clock::time_point moment) const;
  void add_rows();
  void complete_ordered();
  void plan(const std::vector<size_t>& order);
  int64_t most_elements() const;
  void on_ready(size_t slot);
  void hand_over_next();
  void hand_over_rest();
  void send(size_t bucket, const std::shared_ptr<c10::Event>& ready);
  void measure(size_t bucket, const std::shared_ptr<c10::Event>& ready);
  void agree_on_order();
  void refuse_late_gradients();

  // Communication on the training thread. One process has nobody to wait for.
  template <class Body>
  void stand_for(Body body) {
    const auto start = Clock::now();
    body();
    if (!alone()) stats_.wait_seconds += seconds_since(start);
  }

  optim::Arena& arena_;
  distributed::ProcessGroup group_;    // of the training thread
  distributed::ProcessGroup channel_;  // of the buckets
  distributed::DistOptions options_;
  Strategy strategy_;
  std::vector<int64_t> slice_begins_;
  std::unique_ptr<OrderedSum> ordered_;   // dist.deterministic
  std::unique_ptr<BucketSender> sender_;  // otherwise, with more than one process

  std::vector<size_t> order_;
  std::vector<Bucket> buckets_;
  std::vector<std::vector<size_t>> buckets_of_slot_;
  std::vector<int64_t> missing_;   // by bucket: tensors that are not ready
  std::vector<Sending> sendings_;  // by bucket
  size_t next_ = 0;                // first bucket that was not handed over

  int64_t micro_batches_ = 0;
  std::optional<Readiness> readiness_;  // agreed on by all ranks
  std::optional<Readiness> candidate_;  // what this rank saw in its first micro-batch
  bool measures_local_ = false;
  double local_sum_ = 0;        // of squares; as stats_
  bool local_is_known_ = true;  // as local_sum_
  ReductionStats stats_;        // what the thread writes, sendings_ too, is read after waiting

  // Destroyed first: the hooks, then the thread, which work on what stands above.
  CommunicationThread thread_;
  std::unique_ptr<ReadyWatch> watch_;         // dist.overlap
  std::unique_ptr<EmbeddingGradients> rows_;  // where tables are also output projections
};

GradientReducer::Impl::Impl(optim::Arena& arena, distributed::ProcessGroup group,
                            const distributed::DistOptions& options)
    : arena_(arena),
      group_(std::move(group)),
      options_(options),
      strategy_(strategy_named(options.strategy)),
      slice_begins_(equal_slices(arena.size(), group_.size(), kernels::kSumOfSquaresBlock)) {
  if (!alone() && group_.on_device() == arena_.grads().is_cpu()) {
    throw Error(ExitCode::kUsage,
                "dist.backend: `" + std::string(group_.name()) +
                    "` cannot send gradients that lie " +
                    (group_.on_device() ? "in host memory" : "on a GPU"),
                "leave dist.backend at \"auto\", which chooses by the device that trains");
  }
  order_ = reverse_order(arena_.slots().size());
  if (options_.deterministic) {
    ordered_ = std::make_unique<OrderedSum>(arena_.grads(), group_, slice_begins_);
    return;
  }
  if (alone()) return;
  channel_ = group_.duplicate();
  const optim::Slice kept = owned();
  sender_ = std::make_unique<BucketSender>(
      arena_.grads(), channel_,
      BucketSender::Setup{strategy_, options_.compress, slice_begins_, {kept.begin, kept.end}});
  sender_->reserve(std::min(most_elements(), arena_.size()));  // before others wait for this rank
  plan(order_);
  if (options_.overlap) {
    watch_ = std::make_unique<ReadyWatch>(arena_, [this](size_t slot) { on_ready(slot); });
  }
}

optim::Slice GradientReducer::Impl::owned() const {
  const auto rank = static_cast<size_t>(group_.rank());
  switch (strategy_) {
    case Strategy::kSharded:
      return {slice_begins_[rank], slice_begins_[rank + 1]};
    case Strategy::kParameterServer:
      return {0, group_.is_root() ? arena_.size() : 0};
    case Strategy::kAllReduce:
      break;
  }
  return {0, arena_.size()};
}

void GradientReducer::Impl::plan(const std::vector<size_t>& order) {
  order_ = order;
  buckets_ = plan_buckets(extents_of(arena_), order_, most_elements(), kSmallTensor);
  buckets_of_slot_.assign(arena_.slots().size(), {});
  for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    for (const size_t slot : buckets_[bucket].tensors) buckets_of_slot_[slot].push_back(bucket);
  }
}

// The most elements that a bucket has.
int64_t GradientReducer::Impl::most_elements() const {
  const auto element = static_cast<int64_t>(arena_.grads().element_size());
  const int64_t bytes = distributed::bucket_bytes_of(options_, group_.on_device());
  const int64_t most = bytes / element / kAlignment * kAlignment;
  return std::max(most, kAlignment);
}

void GradientReducer::Impl::begin(int64_t micro_batches) {
  micro_batches_ = micro_batches;
  stats_ = {};
  local_sum_ = 0;
  local_is_known_ = true;
  arena_.zero_grads();
  if (ordered_) return ordered_->begin(micro_batches);
  if (rows_) rows_->begin();
  missing_.clear();
  for (const Bucket& bucket : buckets_) {
    missing_.push_back(static_cast<int64_t>(bucket.tensors.size()));
  }
  sendings_.assign(buckets_.size(), {});
  next_ = 0;
}

void GradientReducer::Impl::before_backward(int64_t i) {
  if (ordered_) return arena_.zero_grads();
  if (!watch_) return;
  if (learns()) {
    if (!candidate_) watch_->start_learning();
  } else if (is_last(i)) {
    if (rows_) rows_->keep(true);
    watch_->start_reporting(*readiness_);
  }
}

void GradientReducer::Impl::after_backward(int64_t i) {
  if (ordered_) return stand_for([&] { ordered_->add_round(); });
  if (!watch_) return;
  watch_->stop();
  if (rows_) {
    rows_->keep(false);
    if (is_last(i)) rows_->prepare();
  }
  if (learns() && !candidate_) candidate_ = watch_->learned();
  if (is_last(i)) hand_over_rest();
}

// From the hooks during the last backward.
void GradientReducer::Impl::on_ready(size_t slot) {
  if (rows_ && measures_local_) rows_->remember(slot);
  for (const size_t bucket : buckets_of_slot_[slot]) --missing_[bucket];
  while (next_ < buckets_.size() && missing_[next_] == 0) hand_over_next();
}

void GradientReducer::Impl::hand_over_next() {
  thread_.submit([this, bucket = next_, ready = sender_->mark()] { send(bucket, ready); });
  ++next_;  // only now: without memory for the job, abandon() has to send this bucket
}

void GradientReducer::Impl::hand_over_rest() {
  while (next_ < buckets_.size()) hand_over_next();
}

void GradientReducer::Impl::send(size_t bucket, const std::shared_ptr<c10::Event>& ready) {
  sendings_[bucket].begin = sendings_[bucket].end = Clock::now();
  if (measures_local_) measure(bucket, ready);
  stats_.bytes += sender_->send(buckets_[bucket], ready);
  stats_.buckets += 1;
  sendings_[bucket].end = Clock::now();
}

// Seconds that buckets were under way before this moment.
double GradientReducer::Impl::sent_before(Clock::time_point moment) const {
  Clock::duration sum{};
  for (const Sending& sending : sendings_) {
    if (sending.begin < moment) sum += std::min(sending.end, moment) - sending.begin;
  }
  return std::chrono::duration<double>(sum).count();
}

// On a GPU it asks for a little memory. Without it the measure is missing, but the others wait.
void GradientReducer::Impl::measure(size_t bucket, const std::shared_ptr<c10::Event>& ready) {
  try {
    local_sum_ += sender_->sum_of_squares(buckets_[bucket], ready);
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    local_is_known_ = false;
  }
}

// What finish() and abandon() share. From here on the training thread waits, whichever thread
// sends.
void GradientReducer::Impl::complete() {
  const auto start = Clock::now();
  stand_for([&] { complete_now(); });
  stats_.hidden_seconds = sent_before(start);
}

// All collectives of the update that are left.
void GradientReducer::Impl::complete_now() {
  if (ordered_) {
    complete_ordered();
  } else if (sender_ && watch_) {
    hand_over_rest();
    if (rows_) rows_->exchange();
    thread_.wait();
    if (rows_) add_rows();
    agree_on_order();
  } else if (sender_) {
    while (next_ < buckets_.size()) send(next_++, sender_->mark());
  }
}

// Behind the buckets, since they bring the sums of the dense parts.
void GradientReducer::Impl::add_rows() {
  rows_->apply();
  stats_.bytes += rows_->bytes();
  if (measures_local_) local_sum_ += rows_->added_squares();
}

void GradientReducer::Impl::complete_ordered() {
  while (ordered_->has_rounds()) ordered_->add_round();
  ordered_->finish(strategy_ != Strategy::kSharded);
  stats_.bytes = ordered_->bytes();
}

// Rank 0's order is everybody's. When its first micro-batch failed, the next update tries again.
void GradientReducer::Impl::agree_on_order() {
  if (!learns()) return;
  std::string mine;
  if (group_.is_root() && candidate_) {
    std::vector<int64_t> numbers(candidate_->order.begin(), candidate_->order.end());
    numbers.insert(numbers.end(), candidate_->times.begin(), candidate_->times.end());
    mine = as_bytes(numbers);
  }
  const auto numbers = from_bytes<int64_t>(group_.all_gather_bytes(mine).front());
  const size_t slots = arena_.slots().size();
  if (numbers.size() != 2 * slots) return;
  const auto middle = numbers.begin() + static_cast<int64_t>(slots);
  if (rows_ && rows_->leave_tables_without({middle, numbers.end()})) {
    if (rows_->empty()) rows_.reset();
    candidate_.reset();  // these tables become ready at another time now
    return;
  }
  readiness_ = Readiness{{numbers.begin(), middle}, {middle, numbers.end()}};
  plan(readiness_->order);
}

void GradientReducer::Impl::publish() {
  if (alone() || strategy_ == Strategy::kAllReduce) return;
  const distributed::Buffer params = buffer_of(arena_.params());
  stand_for([&] {
    if (strategy_ == Strategy::kSharded) {
      group_.all_gather(params, slice_begins_);
    } else {
      group_.broadcast(params, /*root=*/0);
    }
  });
}

// Every rank comes here in the same update, after its collectives, so that none is left waiting.
void GradientReducer::Impl::refuse_late_gradients() {
  const auto slot = watch_ ? watch_->late() : std::nullopt;
  if (!slot) return;
  throw Error(ExitCode::kUsage,
              "dist.overlap: the gradient of `" + arena_.slots()[*slot].name +
                  "` changed after it had been sent; the model reaches this parameter more often "
                  "than in the first micro-batch",
              "set dist.overlap = false for this model");
}

GradientReducer::GradientReducer(optim::Arena& arena, distributed::ProcessGroup group,
                                 const distributed::DistOptions& options)
    : impl_(std::make_unique<Impl>(arena, std::move(group), options)) {}

GradientReducer::~GradientReducer() = default;

void GradientReducer::watch_embeddings(const torch::nn::Module& model) {
  const bool every_rank_adds = impl_->strategy_ == Strategy::kAllReduce;
  if (!impl_->watch_ || !every_rank_adds || !impl_->arena_.grads().is_cpu()) return;
  impl_->rows_ = std::make_unique<EmbeddingGradients>(impl_->arena_, impl_->group_, model);
  if (impl_->rows_->empty()) impl_->rows_.reset();
}

void GradientReducer::learn_order_anew() {
  impl_->readiness_.reset();
  impl_->candidate_.reset();
}

void GradientReducer::begin(int64_t local_micro_batches) {
  impl_->begin(local_micro_batches);
}

void GradientReducer::before_backward(int64_t i) {
  impl_->before_backward(i);
}

void GradientReducer::after_backward(int64_t i) {
  impl_->after_backward(i);
}

void GradientReducer::finish() {
  impl_->complete();
  impl_->refuse_late_gradients();
}

void GradientReducer::abandon() {
  if (impl_->watch_) impl_->watch_->stop();
  if (impl_->rows_) impl_->rows_->keep(false);
  impl_->complete();
  if (impl_->watch_) impl_->watch_->late();  // belongs to the update that is dropped
}

optim::Slice GradientReducer::owned() const {
  return impl_->owned();
}

double GradientReducer::sum_of_squares() {
  const optim::Slice slice = owned();
  const at::Tensor mine = impl_->arena_.grads().narrow(0, slice.begin, slice.size());
  std::vector<double> sums = kernels::sum_of_squares_blocks(mine);
  if (impl_->strategy_ != Strategy::kAllReduce) {
    std::string all;  // in order of rank, which is that of the slices
    for (const std::string& part : impl_->group_.all_gather_bytes(as_bytes(sums))) all += part;
    sums = from_bytes<double>(all);
  }
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

void GradientReducer::publish() {
  impl_->publish();
}

void GradientReducer::measure_local(bool wanted) {
  impl_->measures_local_ = wanted;
}

double GradientReducer::local_sum_of_squares() const {
  return impl_->local_is_known_ ? impl_->local_sum_ : 0;
}

const std::vector<int64_t>& GradientReducer::slice_begins() const {
  return impl_->slice_begins_;
}

ReductionStats GradientReducer::stats() const {
  return impl_->stats_;
}

const std::vector<size_t>& GradientReducer::order() const {
  return impl_->order_;
}

}  // namespace stretto::parallel
