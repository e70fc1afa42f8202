#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "decoding/token_scorer.h"
#include "models/causal_model.h"
#include "text/tokenizer.h"

namespace stretto::tasks {

/// A language model of a run whose tokens are those of a recogniser: `decode.lm_run`. Safe to use
/// from several threads.
class LabelModel {
 public:
  /// What the labels of the recogniser are for the model.
  struct Tokens {
    std::vector<int64_t> ids = {};  ///< [labels]: the token of each; -1 = there is none
    int64_t begin = -1, end = -1;   ///< the tokens in front of a text and behind it
    int64_t unknown = -1;           ///< for labels without a token; -1 = such a label never comes
  };
  LabelModel(std::shared_ptr<models::CausalModel> model, Tokens tokens);

  /// What a search asks. A state is a text so far; the model reads each text once, from its
  /// beginning or its last kLongestHistory tokens on, by itself: no score depends on others.
  /// Without gradients. It refers to this object.
  std::unique_ptr<decoding::TokenScorer> scorer() const;

  static constexpr int64_t kLongestHistory = 512;

 private:
  class Scorer;
  std::shared_ptr<models::CausalModel> model_;
  Tokens tokens_;
  int64_t longest_;  ///< tokens that the model reads
};

/// The model of a run folder, or of the checkpoint `best` there, else the last.
/// @param labels  of the recogniser; tokens are the same where their pieces are
/// Throws Error(kUsage) for a folder that is no run of a language model, or whose tokens are none
/// of the recogniser's; and as load_checkpoints() does.
std::shared_ptr<const LabelModel> open_label_model(const std::string& run,
                                                   const text::Tokenizer& labels,
                                                   at::Device device);

}  // namespace stretto::tasks
