#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "data/rank_batches.h"
#include "decoding/decode_options.h"
#include "decoding/search.h"
#include "models/seq2seq_model.h"
#include "tasks/cost_batches.h"
#include "tasks/parallel_jobs.h"

namespace stretto::tasks {

/// One sentence to translate.
struct TranslationRequest {
  std::vector<int64_t> src;     ///< ids with end-of-sentence
  std::vector<int64_t> prefix;  ///< ids that the output must start with; may be empty
  int64_t sentence_id = 0;      ///< seeds sampling, so that batching changes nothing
};

/// Translates with one model or an ensemble of several with the same vocabulary.
///
/// Sentences are sorted by length and searched in batches of at most `decode.max_tokens` source
/// tokens times lanes; results come back in the order of the requests, n-best first. No output is
/// longer than each of the models has positions for. On a CPU each thread searches batches of its
/// own. The models' weights must not change while this lives: it keeps copies that are laid out for
/// products.
class Translator {
 public:
  Translator(std::vector<std::shared_ptr<models::Seq2SeqModel>> models,
             decoding::DecodeOptions options);

  /// @param share  of several processes each searches every size-th batch: the batches, and so the
  ///               results, are those of one process; what falls to others stays empty here
  /// @param before_step  called before each step of each search, from any thread but never twice at
  ///                     once; what it throws ends the work
  std::vector<std::vector<decoding::Hypothesis>> translate(
      const std::vector<TranslationRequest>& requests, const data::RankBatches& share = {},
      const std::function<void()>& before_step = {});

  /// One search for all of some requests: results in their order, from any thread. The caller sees
  /// to it that no gradient is asked for, and to weights that are laid out (tasks/parallel_jobs.h).
  std::vector<std::vector<decoding::Hypothesis>> search(
      std::span<const TranslationRequest* const> requests,
      const std::function<void()>& before_step) const;
  /// What a request costs a search: its source tokens times lanes, the unit of `decode.max_tokens`.
  int64_t cost(const TranslationRequest& request) const;
  /// How translate() cuts requests into searches.
  CostBatchOptions batches() const;

  /// Searched so far, of all calls of translate().
  int64_t num_batches() const { return num_batches_; }
  int64_t num_sentences() const { return num_sentences_; }

 private:
  std::vector<std::shared_ptr<models::Seq2SeqModel>> models_;
  decoding::DecodeOptions options_;
  ParallelJobs searches_;
  int64_t num_batches_ = 0, num_sentences_ = 0;
  int64_t max_length_ = 0;  ///< tokens of an output, end-of-sentence included
};

}  // namespace stretto::tasks
