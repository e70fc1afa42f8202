#include "decoding/search.h"

#include <ATen/Parallel.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "base/random.h"
#include "decoding/beam.h"
#include "decoding/candidates.h"
#include "decoding/sampling_rules.h"

namespace stretto::decoding {
namespace {

struct Source {
  size_t index = 0;  ///< in the input
  int64_t max_len = 0;
  std::vector<Lane> lanes;
};

class Search {
 public:
  Search(StepModel& model, const SearchInput& input, const DecodeOptions& options);
  std::vector<std::vector<Hypothesis>> run();

 private:
  at::Tensor first_log_probs();
  std::vector<bool> nan_lanes(const at::Tensor& log_probs) const;
  std::vector<float> normalisers(int64_t num_lanes) const;
  void penalise(at::Tensor& log_probs) const;
  void apply_rules(at::Tensor& log_probs);
  void choose_only(at::Tensor& row, int64_t token) const;
  void forbid(at::Tensor& row, const Source& source, const Lane& lane) const;
  Continuation extend_beam(const Source& source, int64_t first_lane,
                           const std::vector<std::vector<Candidate>>& rows);
  std::vector<int64_t> draw_all(const at::Tensor& log_probs) const;
  int64_t draw_for(const Source& source, const Lane& lane, std::span<const float> values,
                   float normaliser) const;
  Continuation extend_samples(const Source& source, int64_t first_lane, const at::Tensor& log_probs,
                              const std::vector<int64_t>& drawn);
  void finish(const Source& source, Hypothesis done) {
    finished_[source.index].push_back(std::move(done));
  }
  std::vector<std::vector<Hypothesis>> sorted();

  /// @param source  null: nothing but tokens ends an output
  BeamRules rules(const Source* source = nullptr) const {
    BeamRules own{.options = options_, .eos = input_.eos, .ends = input_.ends};
    if (source != nullptr) {
      own.end_of = [this, source](const Lane& lane) { return end_of(*source, lane); };
    }
    return own;
  }
  bool is_end(int64_t token) const { return rules().is_end(token); }
  bool beam() const { return options_.method == "beam"; }
  int64_t forced_token(const Source& source) const;
  OutputEnd end_of(const Source& source, const Lane& lane) const;
  std::span<const int64_t> prompt_of(const Source& source) const {
    if (input_.prompts.empty()) return {};
    return input_.prompts[source.index];
  }

  StepModel& model_;
  const SearchInput& input_;
  const DecodeOptions& options_;
  const std::vector<SamplingRule> sampling_;
  const RepetitionRules repetition_;
  std::vector<Source> alive_;
  std::vector<std::vector<Hypothesis>> finished_;
  int64_t step_ = 0;
};

Search::Search(StepModel& model, const SearchInput& input, const DecodeOptions& options)
    : model_(model),
      input_(input),
      options_(options),
      sampling_(sampling_rules(options)),
      repetition_(options),
      finished_(input.src_lengths.size()) {
  TORCH_CHECK(input.bos >= 0 && input.eos >= 0,
              "[search] SearchInput needs the vocabulary's bos and eos, got ", input.bos, " and ",
              input.eos);
  TORCH_CHECK(input.prefixes.empty() || input.prefixes.size() == input.src_lengths.size(),
              "[search] ", input.prefixes.size(), " prefixes for ", input.src_lengths.size(),
              " sources");
  TORCH_CHECK(input.sentence_ids.empty() || input.sentence_ids.size() == input.src_lengths.size(),
              "[search] ", input.sentence_ids.size(), " sentence ids for ",
              input.src_lengths.size(), " sources");
  TORCH_CHECK(input.prompts.empty() || input.prompts.size() == input.src_lengths.size(),
              "[search] ", input.prompts.size(), " prompts for ", input.src_lengths.size(),
              " sources");
  for (size_t i = 0; i < input.src_lengths.size(); ++i) {
    // The last token of an output that ends at its bound needs no position: nothing follows.
    const int64_t before =
        (input.prompts.empty() ? 1 : std::ssize(input.prompts[i])) - (input.ends_at_bound ? 1 : 0);
    const int64_t max_len = longest_output(input.src_lengths[i], before, input.max_length, options);
    Source source{.index = i, .max_len = max_len, .lanes = {}};
    for (int64_t k = 0; k < options.beam_size; ++k) source.lanes.push_back({.number = k});
    alive_.push_back(std::move(source));
  }
}

std::vector<std::vector<Hypothesis>> Search::run() {
  std::vector<int64_t> tokens(alive_.size() * options_.beam_size, input_.bos);
  for (; !alive_.empty(); ++step_) {
    at::Tensor log_probs = step_ == 0 && !input_.prompts.empty()
                               ? first_log_probs()
                               : model_.step(at::tensor(tokens, at::kLong));
    const auto is_nan = nan_lanes(log_probs);
    if (beam() && repetition_.active()) penalise(log_probs);
    apply_rules(log_probs);
    const auto rows =
        beam() ? likeliest(log_probs, rules().num_ranked()) : std::vector<std::vector<Candidate>>{};
    if (!beam()) log_probs = log_probs.cpu().contiguous();
    const auto drawn = beam() ? std::vector<int64_t>{} : draw_all(log_probs);

    std::vector<Source> next;
    std::vector<int64_t> parents;
    tokens.clear();
    int64_t first_lane = 0;
    for (Source& source : alive_) {
      const auto own = is_nan.begin() + first_lane;
      if (std::find(own, own + std::ssize(source.lanes), true) != own + std::ssize(source.lanes)) {
        finished_[source.index] = {not_a_number()};
        first_lane += std::ssize(source.lanes);
        continue;
      }
      Continuation going_on = beam() ? extend_beam(source, first_lane, rows)
                                     : extend_samples(source, first_lane, log_probs, drawn);
      first_lane += static_cast<int64_t>(source.lanes.size());
      if (going_on.lanes.empty()) continue;
      parents.insert(parents.end(), going_on.parents.begin(), going_on.parents.end());
      for (const Lane& lane : going_on.lanes) tokens.push_back(lane.ids.back());
      source.lanes = std::move(going_on.lanes);
      next.push_back(std::move(source));
    }
    alive_ = std::move(next);
    if (!alive_.empty()) model_.reorder(parents);
  }
  return sorted();
}

at::Tensor Search::first_log_probs() {
  PackedPrompts prompts;
  for (const std::vector<int64_t>& prompt : input_.prompts) prompts.append(prompt);
  return model_.prefill_packed(prompts, options_.beam_size);
}

// NaN among the scores of a lane makes all of its log-probabilities NaN, so that one column tells.
std::vector<bool> Search::nan_lanes(const at::Tensor& log_probs) const {
  const at::Tensor column = log_probs.select(1, input_.eos).to(at::kCPU, at::kFloat).contiguous();
  std::vector<bool> lanes;
  for (int64_t i = 0; i < column.size(0); ++i) {
    lanes.push_back(std::isnan(column.const_data_ptr<float>()[i]));
  }
  return lanes;
}

std::vector<float> Search::normalisers(int64_t num_lanes) const {
  const at::Tensor of_lanes = model_.log_normalisers();
  if (!of_lanes.defined()) return std::vector<float>(static_cast<size_t>(num_lanes), 0.0F);
  const at::Tensor host = of_lanes.to(at::kCPU, at::kFloat).contiguous();
  const float* numbers = host.const_data_ptr<float>();
  return {numbers, numbers + host.numel()};
}

void Search::penalise(at::Tensor& log_probs) const {
  const std::vector<float> shifts = normalisers(log_probs.size(0));
  int64_t row = 0;
  for (const Source& source : alive_) {
    for (const Lane& lane : source.lanes) {
      at::Tensor lane_row = log_probs[row];
      const float shift = shifts[static_cast<size_t>(row++)];
      const auto seen = seen_tokens(prompt_of(source), lane.ids);
      if (seen.empty()) continue;
      std::vector<int64_t> tokens;
      for (const SeenToken& one : seen) tokens.push_back(one.token);
      const at::Tensor places = at::tensor(tokens, at::kLong).to(lane_row.device());
      at::Tensor values = lane_row.index_select(0, places).cpu();
      float* numbers = values.data_ptr<float>();
      for (size_t i = 0; i < seen.size(); ++i) {
        numbers[i] = repetition_.penalised(numbers[i], shift, seen[i]);
      }
      lane_row.index_copy_(0, places, values.to(lane_row.device()));
    }
  }
}

int64_t Search::forced_token(const Source& source) const {
  if (step_ >= source.max_len) return input_.eos;
  if (input_.prefixes.empty()) return -1;
  const std::vector<int64_t>& prefix = input_.prefixes[source.index];
  return step_ < static_cast<int64_t>(prefix.size()) ? prefix[step_] : -1;
}

void Search::apply_rules(at::Tensor& log_probs) {
  for (const int64_t never : {input_.pad, input_.bos}) {
    if (never >= 0 && !is_end(never)) log_probs.select(1, never).fill_(kNever);
  }
  const bool forbids = step_ < options_.min_len || options_.no_repeat_ngram > 0;
  int64_t row = 0;
  for (const Source& source : alive_) {
    const int64_t forced = forced_token(source);
    if (forced < 0 && !forbids) {  // nothing to look up in many rows
      row += static_cast<int64_t>(source.lanes.size());
      continue;
    }
    for (const Lane& lane : source.lanes) {
      at::Tensor lane_row = log_probs[row++];
      if (forced >= 0) {
        choose_only(lane_row, forced);
      } else {
        forbid(lane_row, source, lane);
      }
    }
  }
}

void Search::choose_only(at::Tensor& row, int64_t token) const {
  const at::Tensor kept = row[token].clone();
  row.fill_(kNever);
  row[token].copy_(kept);
}

void Search::forbid(at::Tensor& row, const Source& source, const Lane& lane) const {
  if (step_ < options_.min_len) {
    row[input_.eos].fill_(kNever);
    for (const int64_t end : input_.ends) row[end].fill_(kNever);
  }
  if (options_.no_repeat_ngram == 0) return;
  const auto prompt = prompt_of(source);
  std::vector<int64_t> history(prompt.begin(), prompt.end());
  history.insert(history.end(), lane.ids.begin(), lane.ids.end());
  for (const int64_t token : repeated_ngram_ends(history, options_.no_repeat_ngram)) {
    row[token].fill_(kNever);
  }
}

Continuation Search::extend_beam(const Source& source, int64_t first_lane,
                                 const std::vector<std::vector<Candidate>>& rows) {
  const int64_t beam_size = options_.beam_size;
  const auto count = static_cast<size_t>(step_ == 0 ? 1 : beam_size);  // at first all are equal
  const std::span own(rows.data() + first_lane, count);
  Continuation next = decoding::extend_beam(std::span(source.lanes).first(count), first_lane, own,
                                            rules(&source), finished_[source.index]);
  while (!next.lanes.empty() && std::ssize(next.lanes) < beam_size) {
    next.lanes.push_back(next.lanes.front());
    next.lanes.back().dead = true;
    next.parents.push_back(next.parents.front());
  }
  return next;
}

// Sorting a large vocabulary takes as long as a step of a small model, so all threads do it.
std::vector<int64_t> Search::draw_all(const at::Tensor& log_probs) const {
  std::vector<std::pair<const Source*, const Lane*>> lanes;
  for (const Source& source : alive_) {
    for (const Lane& lane : source.lanes) lanes.emplace_back(&source, &lane);
  }
  const int64_t num_lanes = std::ssize(lanes), vocab = log_probs.size(1);
  const auto shifts =
      repetition_.active() ? normalisers(num_lanes) : std::vector<float>(lanes.size(), 0.0F);
  std::vector<int64_t> drawn(lanes.size());
  at::parallel_for(0, num_lanes, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto place = static_cast<size_t>(i);
      const std::span<const float> values(log_probs.const_data_ptr<float>() + i * vocab,
                                          static_cast<size_t>(vocab));
      const auto& [source, lane] = lanes[place];
      drawn[place] = draw_for(*source, *lane, values, shifts[place]);
    }
  });
  return drawn;
}

int64_t Search::draw_for(const Source& source, const Lane& lane, std::span<const float> values,
                         float normaliser) const {
  const int64_t sentence = input_.sentence_ids.empty() ? static_cast<int64_t>(source.index)
                                                       : input_.sentence_ids[source.index];
  const uint64_t key = mix64(static_cast<uint64_t>(options_.seed), static_cast<uint64_t>(sentence));
  const auto words = Philox::at(key, static_cast<uint64_t>(step_), lane.number);
  const uint64_t bits = (uint64_t{words[0]} << 32) | words[1];
  const double uniform = static_cast<double>(bits >> 11) * 0x1.0p-53;
  if (!repetition_.active()) return draw(values, uniform, sampling_);
  std::vector<float> penalised(values.begin(), values.end());
  for (const SeenToken& seen : seen_tokens(prompt_of(source), lane.ids)) {
    float& number = penalised[static_cast<size_t>(seen.token)];
    number = repetition_.penalised(number, normaliser, seen);
  }
  return draw(penalised, uniform, sampling_);
}

Continuation Search::extend_samples(const Source& source, int64_t first_lane,
                                    const at::Tensor& log_probs,
                                    const std::vector<int64_t>& drawn) {
  const int64_t vocab = log_probs.size(1);
  Continuation next;
  for (size_t k = 0; k < source.lanes.size(); ++k) {
    const Lane& lane = source.lanes[k];
    const int64_t row = first_lane + static_cast<int64_t>(k);
    const float* values = log_probs.const_data_ptr<float>() + row * vocab;
    const int64_t token = drawn[static_cast<size_t>(row)];
    if (token < 0) continue;  // every continuation is forbidden
    if (is_end(token)) {
      finish(source, ended_by_token(lane, values[token], options_));
      continue;
    }
    next.add(lane, row, {.lane = row, .token = token, .token_log_prob = values[token]});
    const OutputEnd end = end_of(source, next.lanes.back());
    if (end != OutputEnd::kToken) finish(source, ended_by(next.take_back(), end, options_));
  }
  return next;
}

OutputEnd Search::end_of(const Source& source, const Lane& lane) const {
  if (input_.watch != nullptr && input_.watch->ends(source.index, lane.number, lane.ids)) {
    return OutputEnd::kStop;
  }
  const bool is_at_bound = input_.ends_at_bound && std::ssize(lane.ids) >= source.max_len;
  return is_at_bound ? OutputEnd::kBound : OutputEnd::kToken;
}

std::vector<std::vector<Hypothesis>> Search::sorted() {
  for (std::vector<Hypothesis>& hypotheses : finished_) rank_hypotheses(hypotheses, options_);
  return std::move(finished_);
}

}  // namespace

std::vector<std::vector<Hypothesis>> search(StepModel& model, const SearchInput& input,
                                            const DecodeOptions& options) {
  return Search(model, input, options).run();
}

}  // namespace stretto::decoding
