#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "decoding/decode_options.h"
#include "decoding/hypothesis.h"
#include "decoding/step_model.h"

namespace stretto::decoding {

/// Reads along while outputs grow, and may end them.
class OutputWatch {
 public:
  virtual ~OutputWatch() = default;
  /// A token was chosen that is not end-of-sentence.
  /// @param source  place in the input
  /// @param output  of samples and of a beam of one: the same number in each step
  /// @param ids     of the output, the new one last
  /// @return        whether the output ends behind it
  virtual bool ends(size_t source, int64_t output, std::span<const int64_t> ids) = 0;
};

/// What search must know of the sources whose lanes a step model holds, in the same order.
struct SearchInput {
  std::vector<int64_t> src_lengths;            ///< tokens, end-of-sentence included
  std::vector<int64_t> sentence_ids;           ///< coordinates of sampling; empty = 0, 1, 2, …
  std::vector<std::vector<int64_t>> prefixes;  ///< each output starts so; empty = none is forced
  /// Positions that the model has: the hard bound of an output, end and prompt included.
  int64_t max_length = std::numeric_limits<int64_t>::max();
  /// Special ids of the vocabulary: `bos` goes into the first step, `eos` ends an output, and both
  /// are needed (c10::Error); pad = -1: there is none.
  int64_t pad = -1, bos = -1, eos = -1;
  /// Further tokens that end an output as `eos` does.
  std::vector<int64_t> ends = {};
  /// What the outputs of each source continue, with what stands in front of it (`bos`, say), in the
  /// place of the first step with `bos`; empty = nothing is continued.
  std::vector<std::vector<int64_t>> prompts = {};
  /// An output that reaches its bound ends there, and not with end-of-sentence.
  bool ends_at_bound = false;
  OutputWatch* watch = nullptr;
};

/// Decodes all sources together; -> for each source at most `nbest` hypotheses, best score first.
///
/// Both methods: pad and beginning-of-sentence are never chosen, unless end-of-sentence has the
/// same id; end-of-sentence only after `min_len` tokens, and as the only choice after
/// floor(max_len_a * source + max_len_b), unless outputs end at that bound. A forced prefix goes
/// before all other rules except the last. `model` must hold options.beam_size lanes per source.
/// Penalties of repetition (decoding/sampling_rules.h) and no_repeat_ngram see the prompt too.
///
/// "beam", as fairseq: the first step expands one lane. Each step ranks the 2 * beam_size best
/// continuations of a source by log_prob (beam_size more for each further end); those with
/// end-of-sentence among the first beam_size are finished, the first beam_size others go on. A
/// source is done when beam_size hypotheses are finished, or none is left to go on. Penalties of
/// repetition change the log-probabilities that hypotheses are ranked by, and that they have in the
/// end.
///
/// "sample": beam_size independent draws by the rules of decoding/sampling_rules.h.
/// The number behind each draw is a function of (seed, sentence id, step, hypothesis) alone, so
/// that a result does not depend on the company in the batch. log_prob is the model's, without
/// temperature and penalties.
///
/// A source for which the model gives NaN instead of probabilities has one hypothesis, without ids,
/// whose score is NaN.
std::vector<std::vector<Hypothesis>> search(StepModel& model, const SearchInput& input,
                                            const DecodeOptions& options);

}  // namespace stretto::decoding
