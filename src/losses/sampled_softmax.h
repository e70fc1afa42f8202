#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "nn/output_loss.h"

namespace stretto::losses {

/// Where sampled classes come from, for as long as it lives, on this thread: whoever computes a
/// loss of training says of which update.
class SampleScope {
 public:
  /// @param key  mix64(seed, update): all micro-batches of an update sample the same classes
  explicit SampleScope(uint64_t key);
  ~SampleScope();
  SampleScope(const SampleScope&) = delete;
  SampleScope& operator=(const SampleScope&) = delete;

  static std::optional<uint64_t> current();

 private:
  std::optional<uint64_t> before_;
};

/// The probability of class c among C under the log-uniform law, log((c + 2) / (c + 1)) /
/// log(C + 1): about Zipf's for ids in order of frequency, the frequent ones first.
double log_uniform_probability(int64_t c, int64_t num_classes);
/// So many classes by that law, with replacement, as a function of the key.
std::vector<int64_t> log_uniform_samples(uint64_t key, int64_t samples, int64_t num_classes);

/// Cross entropy with a sampled normaliser, for large vocabularies (Bengio and Senécal 2008; Jean
/// et al. 2015, arXiv:1412.2007): for a target t, logits l and classes s_1 … s_S by the log-uniform
/// law q,
///
///     loss = -l_t + log(exp(l_t) + sum over s_i != t of exp(l_s_i) / (S q(s_i)))
///
/// The sum is an unbiased estimate of that over all other classes. The negative log-likelihood that
/// it returns is the loss itself, an estimate too; `right_sum` is undefined. Without gradients, as
/// in validation and `eval`, the loss is `whole`, over all classes.
///
/// Throws c10::Error for a loss with gradients outside a SampleScope.
/// @param samples  S, at least 1
nn::OutputLoss sampled_softmax(int64_t samples, nn::OutputLoss whole);

}  // namespace stretto::losses
