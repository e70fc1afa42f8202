#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "data/batch_source.h"

namespace stretto::train {

/// Loss of one micro-batch; the sums are over target tokens, natural log.
struct MicroLoss {
  torch::Tensor loss_sum;  ///< scalar with gradient
  double nll_sum = 0;
  int64_t target_tokens = 0;
  int64_t source_tokens = 0;
};

/// Where in the run a micro-batch stands: all that randomness may depend on.
struct StepContext {
  uint64_t seed = 0;
  int64_t update = 0;
};

struct SampleTranslation {
  std::string source, hypothesis, reference;
  std::vector<std::string> source_pieces, hypothesis_pieces;
  std::vector<std::vector<float>> attention;  ///< [hypothesis pieces][source pieces]
};

struct ValidationResult {
  double loss = 0;  ///< smoothed, per target token
  double nll = 0;   ///< per target token
  int64_t target_tokens = 0;
  double bleu = -1;  ///< -1 = not computed
  double seconds = 0;
  std::vector<SampleTranslation> samples;
};

/// What the training loop sees of a task. It names no model and no loss.
class Task {
 public:
  virtual ~Task() = default;
  virtual torch::nn::Module& model() = 0;
  virtual const data::BatchSource& train_batches() = 0;
  virtual MicroLoss loss(const data::Batch& batch, const StepContext& context) = 0;
  /// False when the experiment has no validation data.
  virtual bool can_validate() const = 0;
  /// @param with_translations  also decode, score BLEU and fill `samples`
  virtual ValidationResult validate(bool with_translations) = 0;
  /// Files that later commands need from the run folder, name -> bytes (the tokenizer's models).
  virtual std::map<std::string, std::string> assets() const = 0;
};

}  // namespace stretto::train
