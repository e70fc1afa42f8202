#include "families/translation/engine/translator.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

#include "decoding/shortlist_steps.h"
#include "families/translation/engine/ensemble_loss.h"
#include "kernels/gemm/packed_weights.h"
#include "train/evaluation.h"

namespace stretto::tasks {
namespace {

/// A step model that calls a function before each step.
class HookedStepModel : public decoding::StepModel {
 public:
  HookedStepModel(decoding::StepModel& inner, const std::function<void()>& before_step)
      : inner_(inner), before_step_(before_step) {}

  at::Tensor step(const at::Tensor& tokens) override {
    if (before_step_) before_step_();
    return inner_.step(tokens);
  }
  void reorder(const std::vector<int64_t>& parents) override { inner_.reorder(parents); }
  at::Tensor log_normalisers() const override { return inner_.log_normalisers(); }
  int64_t vocab_size() const override { return inner_.vocab_size(); }

 private:
  decoding::StepModel& inner_;
  const std::function<void()>& before_step_;
};

}  // namespace

class Translator::Queue {
 public:
  Queue(std::vector<const TranslationRequest*> requests, int64_t lanes, int64_t streams)
      : requests_(std::move(requests)), lanes_(lanes) {
    int64_t all = 0;
    for (const TranslationRequest* request : requests_) all += std::ssize(request->src) * lanes_;
    share_ = (all + streams - 1) / streams;
  }

  /// Of the costs of all, for each stream.
  int64_t share() const { return share_; }

  /// The place of the next request, unless it costs more than `most`; below 0: whatever it costs.
  std::optional<size_t> next(int64_t most) {
    const std::lock_guard lock(mutex_);
    if (next_ == requests_.size()) return std::nullopt;
    if (most >= 0 && std::ssize(requests_[next_]->src) * lanes_ > most) return std::nullopt;
    return next_++;
  }
  const TranslationRequest& at(size_t place) const { return *requests_[place]; }

 private:
  const std::vector<const TranslationRequest*> requests_;
  const int64_t lanes_;
  int64_t share_ = 0;
  std::mutex mutex_;
  size_t next_ = 0;
};

Translator::Translator(std::vector<std::shared_ptr<models::Seq2SeqModel>> models,
                       decoding::DecodeOptions options,
                       std::shared_ptr<const decoding::Shortlist> shortlist)
    : models_(std::move(models)), options_(std::move(options)), shortlist_(std::move(shortlist)) {
  max_length_ = std::numeric_limits<int64_t>::max();
  for (const auto& model : models_) {
    model->eval();
    max_length_ = std::min(max_length_, model->max_target_length());
  }
  streams_ = options_.continuous && models_.size() == 1 && decoding::can_stream(options_) &&
             models_.front()->start_stream() != nullptr;
}

int64_t Translator::cost(const TranslationRequest& request) const {
  return std::ssize(request.src) * options_.beam_size;
}

bool Translator::shares_queue() const {
  return streams_ && kernels::PackedWeightsScope::is_used();
}

// A stream bounds what is under way itself. One that shares a queue takes all that falls to it.
CostBatchOptions Translator::batches() const {
  constexpr int64_t kBatchesOfStream = 4, kMost = std::numeric_limits<int64_t>::max();
  CostBatchOptions batches{.order = CostOrder::kLongestFirst,
                           .max_cost = std::max<int64_t>(1, options_.max_tokens)};
  if (shares_queue()) {
    batches.max_cost = kMost;
    batches.for_all_threads = true;
  } else if (streams_) {
    batches.max_cost = std::min(batches.max_cost, kMost / kBatchesOfStream) * kBatchesOfStream;
  }
  return batches;
}

std::vector<std::vector<int64_t>> Translator::translate(
    const std::vector<TranslationRequest>& requests, const distributed::ProcessGroup& group) const {
  if (shares_queue()) return translate_streams(requests, group);
  using Ids = std::vector<int64_t>;
  std::vector<int64_t> costs;
  for (const auto& request : requests) costs.push_back(cost(request));
  const auto all = cost_batches(costs, batches());
  const auto search_one = [&](int64_t number, std::vector<Ids>& outputs,
                              const std::function<void()>& look) {
    const auto& batch = all[static_cast<size_t>(number)];
    std::vector<const TranslationRequest*> members;
    for (const size_t i : batch) members.push_back(&requests[i]);
    const auto found = search(members, look);
    for (size_t k = 0; k < batch.size(); ++k) {
      if (!found[k].empty()) outputs[batch[k]] = found[k].front().ids;
    }
  };
  const at::Device device = models_.front()->parameters().front().device();
  return train::evaluate_answers<Ids>(std::ssize(all), std::ssize(requests),
                                      {.device = device, .group = group}, search_one);
}

std::vector<std::vector<int64_t>> Translator::translate_streams(
    const std::vector<TranslationRequest>& requests, const distributed::ProcessGroup& group) const {
  using Ids = std::vector<int64_t>;
  std::vector<int64_t> costs;
  for (const auto& request : requests) costs.push_back(cost(request));
  const auto sorted = cost_batches(costs, {.order = CostOrder::kLongestFirst, .max_cost = 1});
  std::vector<const TranslationRequest*> own;
  std::vector<size_t> numbers;  // of them among all
  const auto rank = static_cast<size_t>(group.rank()), size = static_cast<size_t>(group.size());
  for (size_t i = rank; i < sorted.size(); i += size) {
    numbers.push_back(sorted[i].front());
    own.push_back(&requests[numbers.back()]);
  }
  // What one thread takes from the queue is a part. With few sentences for each thread, products
  // would have few rows.
  constexpr int64_t kSentencesOfThread = 8;
  const int64_t threads =
      std::clamp<int64_t>(std::ssize(own) / kSentencesOfThread, 1, at::get_num_threads());
  const auto taken_from = queue(own, threads);
  const auto search_some = [&](int64_t /*part*/, std::vector<Ids>& outputs,
                               const std::function<void()>& look) {
    const auto take = [&](size_t place, Found found) {
      if (!found.empty()) outputs[numbers[place]] = std::move(found.front().ids);
    };
    stream(*taken_from, take, look);
  };
  const at::Device device = models_.front()->parameters().front().device();
  return train::evaluate_answers<Ids>(threads * group.size(), std::ssize(requests),
                                      {.device = device, .group = group}, search_some);
}

std::vector<int64_t> Translator::candidates(const TranslationRequest& request) const {
  if (!shortlist_) return {};
  std::vector<int64_t> always = request.prefix;
  always.push_back(models_.front()->target_specials().eos);
  return shortlist_->of(request.src, always);
}

std::shared_ptr<Translator::Queue> Translator::queue(
    std::vector<const TranslationRequest*> requests, int64_t streams) const {
  return std::make_shared<Queue>(std::move(requests), options_.beam_size, streams);
}

void Translator::stream(Queue& queue, const std::function<void(size_t, Found)>& take,
                        const std::function<void()>& before_step) const {
  struct Taken : decoding::StreamQueue {
    Taken(const Translator& own, Queue& all, const std::function<void(size_t, Found)>& taker)
        : translator(own), requests(all), take(taker) {}
    std::optional<decoding::StreamSource> next(int64_t most) override {
      const auto place = requests.next(most);
      if (!place) return std::nullopt;
      const TranslationRequest& request = requests.at(*place);
      decoding::StreamSource source;
      source.number = *place;
      source.ids = request.src;
      source.prefix = request.prefix;
      source.candidates = translator.candidates(request);
      return source;
    }
    void done(size_t number, Found found) override { take(number, std::move(found)); }

    const Translator& translator;
    Queue& requests;
    const std::function<void(size_t, Found)>& take;
  };
  const text::SpecialIds specials = models_.front()->target_specials();
  const int64_t bound = std::max<int64_t>(1, options_.max_tokens);
  const auto model = models_.front()->start_stream();
  Taken taken(*this, queue, take);
  decoding::stream_search(*model, taken,
                          {.max_length = max_length_,
                           .pad = specials.pad,
                           .bos = specials.bos,
                           .eos = specials.eos,
                           .max_cost = std::clamp<int64_t>(queue.share(), 1, bound),
                           .before_step = before_step},
                          options_);
}

std::vector<std::vector<decoding::Hypothesis>> Translator::search(
    std::span<const TranslationRequest* const> requests,
    const std::function<void()>& before_step) const {
  if (streams_) {
    std::vector<Found> outputs(requests.size());
    const auto all = queue({requests.begin(), requests.end()}, /*streams=*/1);
    stream(
        *all, [&](size_t place, Found found) { outputs[place] = std::move(found); }, before_step);
    return outputs;
  }
  data::PackedTokens src;
  const text::SpecialIds specials = models_.front()->target_specials();
  decoding::SearchInput input{.src_lengths = {},
                              .sentence_ids = {},
                              .prefixes = {},
                              .max_length = max_length_,
                              .pad = specials.pad,
                              .bos = specials.bos,
                              .eos = specials.eos};
  std::vector<std::vector<int64_t>> lists;
  for (const TranslationRequest* request : requests) {
    src.append(request->src);
    input.src_lengths.push_back(std::ssize(request->src));
    input.sentence_ids.push_back(request->sentence_id);
    input.prefixes.push_back(request->prefix);
    lists.push_back(candidates(*request));
  }
  auto model = start_together(models_, src, options_.beam_size);
  if (shortlist_) {
    model = decoding::with_shortlists(std::move(model), std::move(lists), options_.beam_size);
  }
  HookedStepModel hooked_model(*model, before_step);
  return decoding::search(hooked_model, input, options_);
}

}  // namespace stretto::tasks
