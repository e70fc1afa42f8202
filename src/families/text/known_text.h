#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "experiment/experiment.h"

namespace stretto::experiment {

/// Shares of `<unk>` above which training warns; above `data.max_unknown` it refuses.
inline constexpr double kWarnUnknown = 0.01;

/// A share of tokens that are unknown, and what is said of it.
struct UnknownShare {
  double rate, most;   ///< `most`: data.max_unknown
  std::string fact;    ///< "training text: 3 % of the tokens are unknown"
  std::string effect;  ///< on the model, in a warning
};

/// Throws Error(kBadData) above `most`, with the remedy.
/// @param warn    whether a rate above kWarnUnknown is worth a line
/// @param remedy  asked for the advice only where something is said
void require_known_share(const UnknownShare& share, bool warn,
                         const std::function<std::string()>& remedy);

/// The tokens of a text, special ones included.
struct TokenCounts {
  int64_t tokens = 0;
  int64_t unknown = 0;  ///< those that stand for what the vocabulary cannot spell

  double unknown_rate() const {  ///< in [0, 1]; 0 without tokens
    return tokens == 0 ? 0 : static_cast<double>(unknown) / static_cast<double>(tokens);
  }
};

/// Looks at a text of a task on encoded texts (families/text/text_sections.h): a model cannot read
/// what is unknown. Throws Error(kBadData) above `data.max_unknown`, with what to do about the
/// tokenizer.
/// @param name  "training text"
/// @param warn  whether a rate above kWarnUnknown is worth a line
void require_known(const std::string& name, const TokenCounts& counts, const Experiment& experiment,
                   bool warn);

}  // namespace stretto::experiment
