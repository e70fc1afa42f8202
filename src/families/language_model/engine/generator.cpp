#include "families/language_model/engine/generator.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "families/language_model/engine/output_text.h"

namespace stretto::tasks {

/// Reads along for stop strings, and for whoever listens.
class Generator::Watch : public decoding::OutputWatch {
 public:
  Watch(const Generator& generator, std::span<const GenerationRequest* const> requests,
        const TextListener& listener, const std::function<void()>& beat)
      : generator_(generator), requests_(requests), listener_(listener), beat_(beat) {}

  bool ends(size_t source, int64_t output, std::span<const int64_t> ids) override {
    generator_.note_token();
    if (beat_) beat_();
    const auto& options = generator_.options_;
    if (options.stop.empty() && !listener_) return false;
    if (options.method == "beam" && options.beam_size > 1) {  // its outputs change places
      OutputText text = text_of(source);
      for (const int64_t id : ids) text.add(id);
      return text.stopped();
    }
    const auto place = std::make_pair(source, output);
    auto found = texts_.find(place);
    if (found == texts_.end()) found = texts_.emplace(place, text_of(source)).first;
    OutputText& text = found->second;
    tell(source, output, text.add(ids.back()));
    return text.stopped();
  }

  /// Tells what was held back until the outputs had ended.
  void finish() {
    for (auto& [place, text] : texts_) tell(place.first, place.second, text.finish());
  }

 private:
  OutputText text_of(size_t source) const {
    return {generator_.tokenizer_, requests_[source]->prompt, generator_.options_.stop};
  }
  void tell(size_t source, int64_t output, const std::string& text) const {
    if (listener_ && output == 0 && !text.empty()) listener_(source, text);
  }

  const Generator& generator_;
  const std::span<const GenerationRequest* const> requests_;
  const TextListener& listener_;
  const std::function<void()>& beat_;
  std::map<std::pair<size_t, int64_t>, OutputText> texts_;
};

Generator::Generator(GeneratingModel model, const text::Tokenizer& tokenizer,
                     decoding::GenerationOptions options)
    : model_(std::move(model)),
      tokenizer_(tokenizer),
      options_(std::move(options)),
      search_(options_.search_options()),
      packs_prompts_(model_.start(1, 1)->takes_unequal_prompts()) {}

std::vector<int64_t> Generator::prompt_of(std::string_view text) const {
  std::vector<int64_t> ids = model_.before;
  tokenizer_.encode(text, ids);
  return ids;
}

// The last token that is written needs no position: nothing follows it.
int64_t Generator::room(const GenerationRequest& request) const {
  const int64_t length = std::ssize(request.prompt);
  if (length > model_.max_length) return 0;
  return std::min(options_.max_new_tokens - 1, model_.max_length - length) + 1;
}

int64_t Generator::cost(const GenerationRequest& request) const {
  return (std::ssize(request.prompt) + room(request)) * options_.lanes();
}

CostBatchOptions Generator::batches() const {
  return {.order = CostOrder::kLongestFirst, .max_cost = options_.max_tokens};
}

std::vector<std::vector<Continuation>> Generator::run(
    std::span<const GenerationRequest* const> requests, const TextListener& listener,
    const std::function<void()>& beat) const {
  if (packs_prompts_) return run_together(requests, listener, beat);
  std::map<size_t, std::vector<size_t>> by_length;
  for (size_t i = 0; i < requests.size(); ++i) {
    by_length[requests[i]->prompt.size()].push_back(i);
  }
  std::vector<std::vector<Continuation>> all(requests.size());
  for (const auto& group : by_length) {
    const std::vector<size_t>& numbers = group.second;
    std::vector<const GenerationRequest*> equal;
    for (const size_t number : numbers) equal.push_back(requests[number]);
    TextListener renamed;
    if (listener) {
      renamed = [&](size_t i, const std::string& text) { listener(numbers[i], text); };
    }
    auto found = run_together(equal, renamed, beat);
    for (size_t i = 0; i < numbers.size(); ++i) all[numbers[i]] = std::move(found[i]);
  }
  return all;
}

std::vector<std::vector<Continuation>> Generator::run_together(
    std::span<const GenerationRequest* const> requests, const TextListener& listener,
    const std::function<void()>& beat) const {
  const text::SpecialIds specials = tokenizer_.specials();
  Watch watch(*this, requests, listener, beat);
  decoding::SearchInput input{
      .src_lengths = std::vector<int64_t>(requests.size(), 0),
      .sentence_ids = {},
      .prefixes = {},
      .max_length = model_.max_length,
      .pad = model_.writes_all ? -1 : specials.pad,
      .bos = model_.writes_all || specials.bos < 0 ? specials.eos : specials.bos,
      .eos = specials.eos,
      .ends = model_.ends,
      .prompts = {},
      .ends_at_bound = true,
      .watch = &watch};
  for (const GenerationRequest* request : requests) {
    input.sentence_ids.push_back(request->line);
    input.prompts.push_back(request->prompt);
  }
  const auto model = model_.start(static_cast<int64_t>(requests.size()), options_.lanes());
  auto found = decoding::search(*model, input, search_);
  watch.finish();
  note_cache_bytes(model->most_cache_bytes());
  std::vector<std::vector<Continuation>> all(requests.size());
  for (size_t i = 0; i < found.size(); ++i) {
    if (options_.method == "sample") {
      std::ranges::stable_sort(found[i], {}, &decoding::Hypothesis::number);
    }
    for (decoding::Hypothesis& one : found[i]) {
      all[i].push_back(continuation_of(*requests[i], std::move(one)));
    }
  }
  return all;
}

void Generator::note_cache_bytes(int64_t bytes) const {
  int64_t most = most_cache_bytes_;
  while (bytes > most && !most_cache_bytes_.compare_exchange_weak(most, bytes)) {
  }
}

void Generator::note_token() const {
  if (first_token_ != 0) return;
  Time::rep none = 0;
  first_token_.compare_exchange_strong(none, Time::clock::now().time_since_epoch().count());
}

std::optional<Generator::Time> Generator::first_token() const {
  const Time::rep ticks = first_token_;
  return ticks == 0 ? std::nullopt : std::optional(Time(Time::duration(ticks)));
}

Continuation Generator::continuation_of(const GenerationRequest& request,
                                        decoding::Hypothesis hypothesis) const {
  OutputText text(tokenizer_, request.prompt, options_.stop);
  Continuation made{.text = {},
                    .ids = std::move(hypothesis.ids),
                    .token_log_probs = std::move(hypothesis.token_log_probs),
                    .score = hypothesis.score,
                    .log_prob = hypothesis.log_prob,
                    .end = hypothesis.end};
  for (const int64_t id : made.ids) made.text += text.add(id);
  made.text += text.finish();
  return made;
}

}  // namespace stretto::tasks
