#include "models/vocabulary_streams.h"

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace stretto::models {
namespace {

/// The part of a query that is of these rows.
kernels::TopQuery query_of_rows(const kernels::TopQuery& query, int64_t first, int64_t count) {
  kernels::TopQuery part{.count = query.count, .never = query.never};
  const auto cut = [&](const auto& all, auto& own) {
    if (!all.empty()) own.assign(all.begin() + first, all.begin() + first + count);
  };
  cut(query.never_of_rows, part.never_of_rows);
  cut(query.asked, part.asked);
  return part;
}

void append_rows(const kernels::TopClasses& part, kernels::TopClasses& all) {
  const auto join = [](const auto& from, auto& to) {
    to.insert(to.end(), from.begin(), from.end());
  };
  all.count = part.count;
  join(part.classes, all.classes);
  join(part.log_probs, all.log_probs);
  join(part.asked_log_probs, all.asked_log_probs);
  join(part.log_sums, all.log_sums);
}

class StreamsOfVocabulary : public decoding::StreamModel {
 public:
  explicit StreamsOfVocabulary(VocabularyStreams parts) : parts_(std::move(parts)) {}

  void enter(std::span<const decoding::EnteringSource> sources) override {
    const torch::NoGradGuard no_grad;
    data::PackedTokens src;
    for (const decoding::EnteringSource& source : sources) {
      src.append(source.ids);
      const bool has_list = !source.candidates.empty();
      sources_.push_back(
          {.lanes = 1, .classes = has_list ? parts_.head->classes(source.candidates) : nullptr});
    }
    parts_.steps->enter(parts_.encode(src));
  }

  kernels::TopClasses step(const std::vector<int64_t>& tokens,
                           const kernels::TopQuery& query) override {
    const torch::NoGradGuard no_grad;
    const at::Tensor rows =
        parts_.steps->step(at::tensor(tokens, at::kLong).to(parts_.head->device()));
    const bool has_lists = std::ranges::any_of(
        sources_, [](const Source& source) { return source.classes != nullptr; });
    if (!has_lists) return parts_.head->top(rows, query);
    kernels::TopClasses all;
    int64_t first = 0;
    for (const Source& source : sources_) {
      const at::Tensor own = rows.narrow(0, first, source.lanes);
      const kernels::TopQuery part = query_of_rows(query, first, source.lanes);
      append_rows(source.classes ? parts_.head->top(own, *source.classes, part)
                                 : parts_.head->top(own, part),
                  all);
      first += source.lanes;
    }
    return all;
  }

  void reorder(const std::vector<int64_t>& parents) override {
    const torch::NoGradGuard no_grad;
    parts_.steps->reorder(parents);
    std::vector<size_t> of_lanes;
    for (size_t i = 0; i < sources_.size(); ++i) {
      of_lanes.insert(of_lanes.end(), static_cast<size_t>(sources_[i].lanes), i);
      sources_[i].lanes = 0;
    }
    for (const int64_t parent : parents) ++sources_[of_lanes[static_cast<size_t>(parent)]].lanes;
    std::erase_if(sources_, [](const Source& source) { return source.lanes == 0; });
  }

  int64_t most_cache_bytes() const override { return parts_.steps->most_cache_bytes(); }
  int64_t vocab_size() const override { return parts_.head->num_classes(); }

 private:
  struct Source {
    int64_t lanes;
    std::shared_ptr<const kernels::ClassRows> classes;  ///< null: all
  };

  VocabularyStreams parts_;
  std::vector<Source> sources_;  ///< with lanes, in their order
};

}  // namespace

std::unique_ptr<decoding::StreamModel> streams_of_vocabulary(VocabularyStreams parts) {
  return std::make_unique<StreamsOfVocabulary>(std::move(parts));
}

}  // namespace stretto::models
