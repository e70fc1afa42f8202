#include "decoding/step_scorer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <utility>

namespace stretto::decoding {

StepScorer::StepScorer(Start start, std::vector<int64_t> begin, int64_t end,
                       std::vector<int64_t> tokens, int64_t most_histories)
    : start_(std::move(start)),
      begin_(std::move(begin)),
      end_(end),
      tokens_(std::move(tokens)),
      most_histories_(most_histories),
      histories_(1) {
  TORCH_CHECK(!begin_.empty(), "[step_scorer] begin must have a token at least");
  TORCH_CHECK(most_histories_ > 0, "[step_scorer] most_histories must be above 0, got ",
              most_histories_);
}

std::vector<int64_t> StepScorer::prompt_of(uint32_t state) const {
  std::vector<int64_t> behind;
  for (; state != 0; state = histories_[state].parent) {
    const int64_t token = tokens_[static_cast<size_t>(histories_[state].token)];
    // A token that the model does not have leaves no trace.
    if (token >= 0) behind.push_back(token);
  }
  std::vector<int64_t> prompt = begin_;
  prompt.insert(prompt.end(), behind.rbegin(), behind.rend());
  return prompt;
}

void StepScorer::take_row(History& history, const float* row, int64_t vocab_size) const {
  const float unlikeliest = *std::min_element(row, row + vocab_size);
  history.log_probs.clear();
  for (const int64_t token : tokens_)
    history.log_probs.push_back(token < 0 ? unlikeliest : row[token]);
  history.log_probs.push_back(end_ < 0 ? 0.0F : row[end_]);
}

void StepScorer::complete(const std::vector<uint32_t>& states) {
  const at::NoGradGuard no_gradients;
  const auto most = static_cast<size_t>(most_histories_);
  for (size_t first = 0; first < states.size(); first += most) {
    const size_t last = std::min(first + most, states.size());
    PackedPrompts prompts;
    for (size_t i = first; i < last; ++i) prompts.append(prompt_of(states[i]));
    const std::unique_ptr<StepModel> model = start_(prompts.size());
    const at::Tensor rows = model->prefill_packed(prompts, 1).to(at::kCPU, at::kFloat).contiguous();
    const int64_t vocab_size = rows.size(1);
    for (size_t i = first; i < last; ++i) {
      take_row(histories_[states[i]],
               rows.const_data_ptr<float>() + static_cast<int64_t>(i - first) * vocab_size,
               vocab_size);
    }
  }
}

uint32_t StepScorer::child(uint32_t state, int32_t token) {
  for (const auto& [known, number] : histories_[state].children) {
    if (known == token) return number;
  }
  const auto number = static_cast<uint32_t>(histories_.size());
  histories_[state].children.emplace_back(token, number);
  History history;
  history.parent = state;
  history.token = token;
  histories_.push_back(std::move(history));
  return number;
}

void StepScorer::score(std::span<const TokenQuery> queries, std::span<TokenScore> scores) {
  std::vector<uint32_t> unknown;
  for (const TokenQuery& query : queries) {
    TORCH_CHECK(query.token >= 0 && static_cast<size_t>(query.token) < tokens_.size(),
                "[step_scorer] token ", query.token, " of ", tokens_.size());
    if (histories_[query.state].log_probs.empty()) unknown.push_back(query.state);
  }
  std::sort(unknown.begin(), unknown.end());
  unknown.erase(std::unique(unknown.begin(), unknown.end()), unknown.end());
  complete(unknown);
  for (size_t i = 0; i < queries.size(); ++i) {
    const auto token = static_cast<size_t>(queries[i].token);
    scores[i].log_prob = histories_[queries[i].state].log_probs[token];
    scores[i].next = child(queries[i].state, queries[i].token);
  }
}

float StepScorer::end(uint32_t state) {
  if (histories_[state].log_probs.empty()) complete({state});
  return histories_[state].log_probs.back();
}

void StepScorer::keep(std::span<uint32_t> states) {
  // Histories that the kept ones begin with stay, too: a prompt is made of them.
  std::vector<uint32_t> renumbered(histories_.size(), 0);
  std::vector<bool> stays(histories_.size(), false);
  stays[0] = true;
  for (const uint32_t state : states) {
    for (uint32_t at = state; !stays[at]; at = histories_[at].parent) stays[at] = true;
  }
  std::vector<History> kept;
  for (uint32_t i = 0; i < histories_.size(); ++i) {
    if (!stays[i]) continue;
    renumbered[i] = static_cast<uint32_t>(kept.size());
    kept.push_back(std::move(histories_[i]));
    History& history = kept.back();
    history.parent = renumbered[history.parent];
    std::erase_if(history.children, [&](const auto& child) { return !stays[child.second]; });
  }
  for (History& history : kept) {
    for (auto& child : history.children) child.second = renumbered[child.second];
  }
  histories_ = std::move(kept);
  for (uint32_t& state : states) state = renumbered[state];
}

}  // namespace stretto::decoding
