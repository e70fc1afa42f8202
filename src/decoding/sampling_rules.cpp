#include "decoding/sampling_rules.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>

#include "decoding/group_draw.h"
#include "decoding/likeliest_tokens.h"

namespace stretto::decoding {
namespace {

/// What the rules come to for a draw by groups; nothing where it does not know them.
std::optional<GroupDrawRules> group_rules(std::span<const SamplingRule> rules) {
  GroupDrawRules all;
  for (const SamplingRule& rule : rules) {
    if (all.top_p < 1) return {};  // it is the last one there
    if (const auto* heat = std::get_if<Temperature>(&rule)) {
      all.temperature *= heat->temperature;
    } else if (const auto* nucleus = std::get_if<TopP>(&rule)) {
      all.top_p = nucleus->p;
    } else {
      return {};
    }
  }
  return all;
}

}  // namespace

TokenPool::TokenPool(std::span<const float> row) : row_(row), highest_(kNever) {
  tokens_.reserve(row.size());
  for (size_t i = 0; i < row.size(); ++i) {
    if (!(row[i] > kNever)) continue;
    tokens_.push_back(static_cast<int64_t>(i));
    highest_ = std::max(highest_, row[i]);
  }
}

void TokenPool::sort(size_t count) {
  if (count <= sorted_) return;
  const auto likelier = [&](int64_t a, int64_t b) {
    const float left = row_[static_cast<size_t>(a)], right = row_[static_cast<size_t>(b)];
    return left != right ? left > right : a < b;
  };
  // Whoever wants one more often wants many more: each selection reads all the rest.
  constexpr size_t kFewest = 64, kGrowth = 4;
  count = std::min(std::max({count, kFewest, kGrowth * sorted_}), tokens_.size());
  const auto begin = tokens_.begin() + static_cast<std::ptrdiff_t>(sorted_),
             end = tokens_.begin() + static_cast<std::ptrdiff_t>(count);
  if (end != tokens_.end()) std::nth_element(begin, end, tokens_.end(), likelier);
  std::sort(begin, end, likelier);
  sorted_ = count;
}

void TokenPool::keep_likeliest(int64_t count) {
  constexpr size_t kFew = 16;  // of so many tokens, one: they are found without moving the others
  const auto kept = std::min(static_cast<size_t>(count), tokens_.size());
  if (sorted_ == 0 && kept * kFew <= tokens_.size()) {
    tokens_ = likeliest_tokens(row_, kept);
  } else {
    sort(kept);
    tokens_.resize(kept);
  }
  sorted_ = kept;
  mass_.reset();
}

double TokenPool::weight_of(int64_t token) const {
  // The likeliest weighs 1 at any temperature, one that the processor takes for 0 too.
  const double highest = highest_;
  const double behind = row_[static_cast<size_t>(token)] - highest;
  return behind == 0 ? 1.0 : std::exp(behind / temperature_);
}

double TokenPool::weight(size_t rank) {
  sort(rank + 1);
  return weight_of(tokens_[rank]);
}

double TokenPool::mass() {
  if (!mass_) {
    mass_ = 0;
    for (const int64_t token : tokens_) *mass_ += weight_of(token);
  }
  return *mass_;
}

void TokenPool::cut(size_t count) {
  count = std::min(std::max<size_t>(count, 1), tokens_.size());
  if (count < tokens_.size()) keep_likeliest(static_cast<int64_t>(count));
}

int64_t TokenPool::draw(double uniform) {
  double rest = uniform * mass();
  for (size_t rank = 0; rank < size(); ++rank) {
    rest -= weight(rank);
    if (rest < 0) return tokens_[rank];
  }
  return tokens_.back();
}

void TopP::apply(TokenPool& pool) const {
  const double enough = p * pool.mass();
  size_t size = 0;
  for (double mass = 0; size < pool.size() && mass < enough; ++size) mass += pool.weight(size);
  pool.cut(size);
}

void MinP::apply(TokenPool& pool) const {
  size_t size = 0;  // weights are largest first, and the first one is 1
  while (size < pool.size() && pool.weight(size) >= p) ++size;
  pool.cut(size);
}

std::vector<SamplingRule> sampling_rules(const SamplingOptions& options) {
  std::vector<SamplingRule> rules;
  if (options.top_k > 0) rules.emplace_back(TopK{options.top_k});
  if (options.temperature != 1) rules.emplace_back(Temperature{options.temperature});
  if (options.top_p < 1) rules.emplace_back(TopP{options.top_p});
  if (options.min_p > 0) rules.emplace_back(MinP{options.min_p});
  return rules;
}

int64_t draw(std::span<const float> row, double uniform, std::span<const SamplingRule> rules) {
  constexpr size_t kManyTokens = 4096;
  if (row.size() >= kManyTokens) {
    const auto known = group_rules(rules);
    const auto token = known ? draw_by_groups(row, uniform, *known) : std::nullopt;
    if (token) return *token;
  }
  return draw_by_ranks(row, uniform, rules);
}

int64_t draw_by_ranks(std::span<const float> row, double uniform,
                      std::span<const SamplingRule> rules) {
  TokenPool pool(row);
  if (pool.empty()) return -1;
  for (const SamplingRule& rule : rules) {
    std::visit([&](const auto& one) { one.apply(pool); }, rule);
  }
  return pool.draw(uniform);
}

std::vector<SeenToken> seen_tokens(std::span<const int64_t> prompt,
                                   std::span<const int64_t> output) {
  std::map<int64_t, int64_t> counts;
  for (const int64_t token : prompt) counts.try_emplace(token, 0);
  for (const int64_t token : output) ++counts[token];
  std::vector<SeenToken> seen;
  for (const auto& [token, count] : counts) seen.push_back({token, count});
  return seen;
}

RepetitionRules::RepetitionRules(const SamplingOptions& options)
    : repetition_(options.repetition_penalty),
      frequency_(options.frequency_penalty),
      presence_(options.presence_penalty) {}

bool RepetitionRules::active() const {
  return repetition_ != 1 || frequency_ != 0 || presence_ != 0;
}

double RepetitionRules::penalised(double logit, const SeenToken& seen) const {
  logit = logit < 0 ? logit * repetition_ : logit / repetition_;
  if (seen.in_output == 0) return logit;
  return logit - frequency_ * static_cast<double>(seen.in_output) - presence_;
}

float RepetitionRules::penalised(float log_prob, double normaliser, const SeenToken& seen) const {
  if (!(log_prob > kNever)) return log_prob;
  return static_cast<float>(penalised(log_prob + normaliser, seen) - normaliser);
}

}  // namespace stretto::decoding
