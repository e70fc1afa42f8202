#include "decoding/stream_search.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

#include "decoding/beam.h"
#include "decoding/candidates.h"
#include "decoding/sampling_rules.h"

namespace stretto::decoding {
namespace {

/// A source that is under way.
struct Streamed {
  StreamSource source;
  int64_t cost = 0, max_len = 0;
  int64_t step = 0;  ///< its own, from 0
  std::vector<Lane> lanes;
  std::vector<Hypothesis> finished = {};

  /// The only token that may come next; -1 = any.
  int64_t forced(int64_t eos) const {
    if (step >= max_len) return eos;
    return step < std::ssize(source.prefix) ? source.prefix[static_cast<size_t>(step)] : -1;
  }
};

class StreamSearch {
 public:
  StreamSearch(StreamModel& model, StreamQueue& queue, const StreamSetup& setup,
               const DecodeOptions& options)
      : model_(model),
        queue_(queue),
        setup_(setup),
        options_(options),
        rules_{.options = options, .eos = setup.eos} {
    TORCH_CHECK(setup.bos >= 0 && setup.eos >= 0,
                "[stream_search] needs the vocabulary's bos and eos, got ", setup.bos, " and ",
                setup.eos);
    TORCH_CHECK(can_stream(options), "[stream_search] decodes by beam search without penalties");
    for (const int64_t never : {setup.pad, setup.bos}) {
      if (never >= 0 && !rules_.is_end(never)) never_.push_back(never);
    }
  }

  void run() {
    for (enter(); !alive_.empty(); enter()) {
      if (setup_.before_step) setup_.before_step();
      step();
    }
  }

 private:
  void enter();
  void add(StreamSource source);
  void step();
  kernels::TopQuery query() const;
  std::vector<int64_t> never_of(const Streamed& one, const Lane& lane) const;
  std::vector<std::vector<Candidate>> continuations(const kernels::TopClasses& top,
                                                    const Streamed& one, int64_t first_lane) const;
  bool is_never(int64_t token) const { return std::ranges::find(never_, token) != never_.end(); }

  StreamModel& model_;
  StreamQueue& queue_;
  const StreamSetup& setup_;
  const DecodeOptions& options_;
  const BeamRules rules_;
  std::vector<int64_t> never_;  // pad and beginning-of-sentence
  std::deque<Streamed> alive_;
  int64_t cost_ = 0;  // of all that are alive
};

// One that costs more than there is room for comes in alone.
void StreamSearch::enter() {
  if (!alive_.empty() && (setup_.max_cost - cost_) * 4 < setup_.max_cost) return;
  const size_t before = alive_.size();
  for (;;) {
    auto next = queue_.next(alive_.empty() ? -1 : std::max<int64_t>(setup_.max_cost - cost_, 0));
    if (!next) break;
    add(std::move(*next));
  }
  std::vector<EnteringSource> entering;
  for (size_t i = before; i < alive_.size(); ++i) {
    entering.push_back(
        {.ids = alive_[i].source.ids, .candidates = std::move(alive_[i].source.candidates)});
  }
  if (!entering.empty()) model_.enter(entering);
}

void StreamSearch::add(StreamSource source) {
  if (!source.candidates.empty()) {
    std::vector<int64_t>& ids = source.candidates;
    ids.insert(ids.end(), source.prefix.begin(), source.prefix.end());
    ids.push_back(setup_.eos);
    std::ranges::sort(ids);
    const auto rest = std::ranges::unique(ids);
    ids.erase(rest.begin(), rest.end());
  }
  const int64_t length = std::ssize(source.ids);
  Streamed one{.source = std::move(source),
               .cost = length * options_.beam_size,
               .max_len = longest_output(length, /*before=*/1, setup_.max_length, options_),
               .lanes = std::vector<Lane>(1)};
  cost_ += one.cost;
  alive_.push_back(std::move(one));
}

void StreamSearch::step() {
  std::vector<int64_t> tokens;
  for (const Streamed& one : alive_) {
    for (const Lane& lane : one.lanes) {
      tokens.push_back(lane.ids.empty() ? setup_.bos : lane.ids.back());
    }
  }
  const kernels::TopClasses top = model_.step(tokens, query());
  std::deque<Streamed> going_on;
  std::vector<int64_t> parents;
  int64_t first_lane = 0;
  for (Streamed& one : alive_) {
    const auto lanes = std::ssize(one.lanes);
    const auto sums = std::span(top.log_sums)
                          .subspan(static_cast<size_t>(first_lane), static_cast<size_t>(lanes));
    Continuation next;
    if (std::ranges::any_of(sums, [](double sum) { return std::isnan(sum); })) {
      one.finished = {not_a_number()};
    } else {
      next = extend_beam(one.lanes, first_lane, continuations(top, one, first_lane), rules_,
                         one.finished);
    }
    first_lane += lanes;
    if (next.lanes.empty()) {
      cost_ -= one.cost;
      rank_hypotheses(one.finished, options_);
      queue_.done(one.source.number, std::move(one.finished));
      continue;
    }
    parents.insert(parents.end(), next.parents.begin(), next.parents.end());
    one.lanes = std::move(next.lanes);
    ++one.step;
    going_on.push_back(std::move(one));
  }
  alive_ = std::move(going_on);
  model_.reorder(parents);
}

kernels::TopQuery StreamSearch::query() const {
  kernels::TopQuery query{.count = rules_.num_ranked(), .never = never_};
  bool some_never = false, some_forced = false;
  for (const Streamed& one : alive_) {
    const int64_t forced = one.forced(setup_.eos);
    some_forced = some_forced || forced >= 0;
    for (const Lane& lane : one.lanes) {
      query.asked.push_back(forced);
      query.never_of_rows.push_back(forced >= 0 ? std::vector<int64_t>{} : never_of(one, lane));
      some_never = some_never || !query.never_of_rows.back().empty();
    }
  }
  if (!some_forced) query.asked.clear();
  if (!some_never) query.never_of_rows.clear();
  return query;
}

std::vector<int64_t> StreamSearch::never_of(const Streamed& one, const Lane& lane) const {
  std::vector<int64_t> never;
  if (options_.no_repeat_ngram > 0) {
    never = repeated_ngram_ends(lane.ids, options_.no_repeat_ngram);
  }
  if (one.step < options_.min_len) never.push_back(setup_.eos);
  return never;
}

std::vector<std::vector<Candidate>> StreamSearch::continuations(const kernels::TopClasses& top,
                                                                const Streamed& one,
                                                                int64_t first_lane) const {
  const int64_t forced = one.forced(setup_.eos);
  std::vector<std::vector<Candidate>> rows(one.lanes.size());
  for (size_t k = 0; k < rows.size(); ++k) {
    const int64_t row = first_lane + static_cast<int64_t>(k);
    const auto keep = [&](int64_t token, float log_prob) {
      if (log_prob > kNever) rows[k].push_back({row, token, log_prob, log_prob});
    };
    if (forced >= 0) {
      if (!is_never(forced)) keep(forced, top.asked_log_probs[static_cast<size_t>(row)]);
      continue;
    }
    const auto tokens = top.classes_of(row);
    const auto log_probs = top.log_probs_of(row);
    for (size_t i = 0; i < tokens.size() && tokens[i] >= 0; ++i) keep(tokens[i], log_probs[i]);
  }
  return rows;
}

}  // namespace

bool can_stream(const DecodeOptions& options) {
  return options.method == "beam" && !RepetitionRules(options).active();
}

void stream_search(StreamModel& model, StreamQueue& queue, const StreamSetup& setup,
                   const DecodeOptions& options) {
  StreamSearch(model, queue, setup, options).run();
}

}  // namespace stretto::decoding
