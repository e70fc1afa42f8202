#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "decoding/decode_options.h"
#include "decoding/search.h"
#include "decoding/shortlist.h"
#include "decoding/stream_search.h"
#include "distributed/process_group.h"
#include "models/seq2seq_model.h"
#include "tasks/cost_batches.h"

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
/// tokens times lanes. Where streams() says so, the next sentences enter such a batch as others in
/// it end (decoding/stream_search.h), with the same outputs. Results are in the order of the
/// requests. No output is longer than each of the models has positions for.
class Translator {
 public:
  /// @param shortlist  which tokens an output may have; null = all
  Translator(std::vector<std::shared_ptr<models::Seq2SeqModel>> models,
             decoding::DecodeOptions options,
             std::shared_ptr<const decoding::Shortlist> shortlist = nullptr);

  /// Whether sentences enter a batch while others go on: of one model on a CPU whose decoder can,
  /// by options that can be searched by so, unless `decode.continuous` is off.
  bool streams() const { return streams_; }

  /// Whether streams of several threads may share a queue: where a row of a product depends on the
  /// rows beside it (PackedWeightsScope::is_used), outputs would depend on which thread was first.
  /// There, each batch of batches() is a queue of its own.
  bool shares_queue() const;

  /// The best output of each request, ids without end-of-sentence. On a CPU each thread searches
  /// batches of its own, or has a batch that takes the next sentences from a queue that all share.
  /// Collective.
  /// @param group  shares the batches out and gets all outputs, which are those of one process
  ///               (train/evaluation.h); before each step of each search its peers are looked at
  /// Throws Error(kPeerLost) when a process is lost.
  std::vector<std::vector<int64_t>> translate(const std::vector<TranslationRequest>& requests,
                                              const distributed::ProcessGroup& group = {}) const;

  /// One search for all of some requests: results in their order, from any thread. The caller sees
  /// to it that no gradient is asked for, and to weights that are laid out
  /// (parallel/parallel_jobs.h).
  std::vector<std::vector<decoding::Hypothesis>> search(
      std::span<const TranslationRequest* const> requests,
      const std::function<void()>& before_step) const;

  using Found = std::vector<decoding::Hypothesis>;
  /// Requests from which the streams of several threads take one after the other; whose they are
  /// lets them live.
  class Queue;
  /// @param requests  longest first, or in any order
  /// @param streams   that take from it: none gets more than its share while others wait
  std::shared_ptr<Queue> queue(std::vector<const TranslationRequest*> requests,
                               int64_t streams) const;
  /// Where shares_queue(): takes requests from a queue until there is none, as search() does.
  /// @param take  called with the place of a request in the queue, and its outputs
  void stream(Queue& queue, const std::function<void(size_t, Found)>& take,
              const std::function<void()>& before_step) const;

  /// What a request costs a search: its source tokens times lanes, the unit of `decode.max_tokens`.
  int64_t cost(const TranslationRequest& request) const;
  /// How translate() cuts requests into searches.
  CostBatchOptions batches() const;

 private:
  std::vector<std::vector<int64_t>> translate_streams(
      const std::vector<TranslationRequest>& requests,
      const distributed::ProcessGroup& group) const;
  /// The tokens that its outputs may have; empty = all.
  std::vector<int64_t> candidates(const TranslationRequest& request) const;

  std::vector<std::shared_ptr<models::Seq2SeqModel>> models_;
  decoding::DecodeOptions options_;
  std::shared_ptr<const decoding::Shortlist> shortlist_;
  int64_t max_length_ = 0;  ///< tokens of an output, end-of-sentence included
  bool streams_ = false;
};

}  // namespace stretto::tasks
