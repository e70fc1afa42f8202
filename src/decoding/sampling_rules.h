#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "decoding/sampling_options.h"

/// How a random token is drawn from the probabilities of a model, as a list of rules. No libtorch.
///
/// The order is that of `transformers`: first penalties on logits of tokens that were there before,
/// then top-k, temperature, top-p and min-p. (The order of the first two of these does not matter.)
namespace stretto::decoding {

/// The log-probability of a token that cannot come.
inline constexpr float kNever = -std::numeric_limits<float>::infinity();

/// The tokens that may be drawn. Rules leave some of them out, or weigh them otherwise. As many of
/// the likeliest are sorted as somebody asks for: of a large vocabulary most draws want few.
class TokenPool {
 public:
  /// @param row  log-probabilities [vocab], which outlive this; tokens of -inf are left out
  explicit TokenPool(std::span<const float> row);

  bool empty() const { return tokens_.empty(); }
  size_t size() const { return tokens_.size(); }
  /// Keeps the `count` likeliest; of equal ones those with the lowest ids.
  void keep_likeliest(int64_t count);
  /// Log-probabilities are divided by it from now on. Before anybody asks for weights.
  void divide_by(double temperature) { temperature_ *= temperature; }
  /// In proportion to the probability of the token at this rank; that of the likeliest, at 0, is 1.
  double weight(size_t rank);
  double mass();  ///< the sum of all weights
  /// Keeps so many of the likeliest, at least one.
  void cut(size_t count);
  /// The token behind `uniform` in [0, 1). Not of an empty pool.
  int64_t draw(double uniform);

 private:
  void sort(size_t count);
  double weight_of(int64_t token) const;

  std::span<const float> row_;
  std::vector<int64_t> tokens_;
  double temperature_ = 1;
  size_t sorted_ = 0;  ///< so many tokens are the likeliest in their order
  float highest_;
  std::optional<double> mass_;  ///< nothing: not asked for yet
};

/// The k likeliest tokens (Fan et al. 2018, arXiv:1805.04833).
struct TopK {
  int64_t k = 1;
  void apply(TokenPool& pool) const { pool.keep_likeliest(k); }
};

/// p ^ (1 / temperature), normalised.
struct Temperature {
  double temperature = 1;
  void apply(TokenPool& pool) const { pool.divide_by(temperature); }
};

/// The shortest list of likeliest tokens that has this share of the mass (Holtzman et al. 2019,
/// arXiv:1904.09751).
struct TopP {
  double p = 1;
  void apply(TokenPool& pool) const;
};

/// Tokens whose probability is at least this share of the likeliest one's (Nguyen et al. 2024,
/// arXiv:2407.01082).
struct MinP {
  double p = 0;
  void apply(TokenPool& pool) const;
};

using SamplingRule = std::variant<TopK, Temperature, TopP, MinP>;

/// The rules that the options ask for, in their order; those that would change nothing are left
/// out.
std::vector<SamplingRule> sampling_rules(const SamplingOptions& options);

/// Draws a token from the probabilities of a row as the rules shape them.
///
/// @param row      log-probabilities [vocab]; -inf is never drawn
/// @param uniform  in [0, 1)
/// @return         the token, or -1 when every entry is -inf
int64_t draw(std::span<const float> row, double uniform, std::span<const SamplingRule> rules);

/// The same by what the rules say, from the likeliest token on: what draw() is measured by, and
/// where it ends when its shorter way (decoding/group_draw.h) gives no answer.
int64_t draw_by_ranks(std::span<const float> row, double uniform,
                      std::span<const SamplingRule> rules);

/// A token that was there before.
struct SeenToken {
  int64_t token = 0;
  int64_t in_output = 0;  ///< how often the output has it; 0 = the prompt alone has it
  bool operator==(const SeenToken&) const = default;
};

/// The tokens of a prompt and of what was written behind it, each once, by ascending id.
std::vector<SeenToken> seen_tokens(std::span<const int64_t> prompt,
                                   std::span<const int64_t> output);

/// What it costs a token that it was there before. Applied to its logit x, in this order:
///
///     repetition_penalty r   x r where x < 0, else x / r       of prompt and output
///     frequency_penalty f    x - f n                           n times in the output
///     presence_penalty p     x - p                             where n > 0
///
/// The first is that of CTRL (Keskar et al. 2019, arXiv:1909.05858) as `transformers` has it, whose
/// sign keeps it a penalty; the other two are those of OpenAI's interface.
class RepetitionRules {
 public:
  explicit RepetitionRules(const SamplingOptions& options);
  bool active() const;
  double penalised(double logit, const SeenToken& seen) const;
  /// The same of a log-probability, which is a logit minus `normaliser`. Probabilities are not
  /// normalised anew.
  float penalised(float log_prob, double normaliser, const SeenToken& seen) const;

 private:
  double repetition_, frequency_, presence_;
};

}  // namespace stretto::decoding
