#include "decoding/sampling_rules.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace stretto::decoding {

TokenPool::TokenPool(std::span<const float> row) : row_(row), tokens_(row.size()) {
  std::iota(tokens_.begin(), tokens_.end(), 0);
  std::erase_if(tokens_,
                [&](int64_t token) { return !(row_[static_cast<size_t>(token)] > kNever); });
}

void TokenPool::sort(int64_t count) {
  if (sorted_) return;
  const auto likelier = [&](int64_t a, int64_t b) {
    const float left = row_[static_cast<size_t>(a)], right = row_[static_cast<size_t>(b)];
    return left != right ? left > right : a < b;
  };
  if (count < std::ssize(tokens_)) {
    std::partial_sort(tokens_.begin(), tokens_.begin() + count, tokens_.end(), likelier);
  } else {
    std::sort(tokens_.begin(), tokens_.end(), likelier);
  }
}

void TokenPool::keep_likeliest(int64_t count) {
  count = std::min(count, std::ssize(tokens_));
  sort(count);
  sorted_ = true;
  tokens_.resize(static_cast<size_t>(count));
  weights_.clear();
}

void TokenPool::weigh() {
  if (!weights_.empty() || tokens_.empty()) return;
  sort(std::ssize(tokens_));
  sorted_ = true;
  const double highest = row_[static_cast<size_t>(tokens_.front())];
  for (const int64_t token : tokens_) {
    // The likeliest weighs 1 at any temperature, one that the processor takes for 0 too.
    const double behind = row_[static_cast<size_t>(token)] - highest;
    weights_.push_back(behind == 0 ? 1.0 : std::exp(behind / temperature_));
  }
  mass_ = std::accumulate(weights_.begin(), weights_.end(), 0.0);
}

const std::vector<double>& TokenPool::weights() {
  weigh();
  return weights_;
}

double TokenPool::mass() {
  weigh();
  return mass_;
}

void TokenPool::cut(size_t count) {
  weigh();
  count = std::min(std::max<size_t>(count, 1), tokens_.size());
  if (count == tokens_.size()) return;
  tokens_.resize(count);
  weights_.resize(count);
  mass_ = std::accumulate(weights_.begin(), weights_.end(), 0.0);
}

int64_t TokenPool::draw(double uniform) {
  weigh();
  double rest = uniform * mass_;
  for (size_t i = 0; i < weights_.size(); ++i) {
    rest -= weights_[i];
    if (rest < 0) return tokens_[i];
  }
  return tokens_.back();
}

void TopP::apply(TokenPool& pool) const {
  const std::vector<double>& weights = pool.weights();
  const double enough = p * pool.mass();
  size_t size = 0;
  for (double mass = 0; size < weights.size() && mass < enough; ++size) mass += weights[size];
  pool.cut(size);
}

void MinP::apply(TokenPool& pool) const {
  const std::vector<double>& weights = pool.weights();  // largest first, and that one is 1
  size_t size = 0;
  while (size < weights.size() && weights[size] >= p) ++size;
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
