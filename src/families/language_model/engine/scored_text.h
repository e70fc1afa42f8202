#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/documents/causal_text.h"
#include "data/documents/document_sizes.h"
#include "data/documents/documents.h"
#include "experiment/experiment.h"
#include "families/language_model/language_model_options.h"
#include "models/causal_model.h"
#include "train/evaluation.h"
#include "train/prepared.h"
#include "train/task.h"

/// How probable a language model finds a text.
///
/// A Transformer reads windows of the text (data/documents/stream_windows.h); a recurrent model
/// reads it from its begin to its end, and its state goes on. Neither number depends on how windows
/// or stretches are put into batches, nor on the number of processes.
namespace stretto::tasks {

/// What a batch of a stream is prepared with.
struct StreamPreparation {
  int64_t left_out = -1;  ///< a token that is read and not scored, such as a separator; -1 = none
};

/// A batch of stream columns as tensors: its inputs as rows(0), and the tokens that are scored.
/// With a column kStreamScored, or a token that is left out, their places among the rows too.
train::Prepared prepare_stream(data::Batch batch, const StreamPreparation& how);

/// Rows of a batch that are scored, and their tokens.
struct ScoredRows {
  at::Tensor rows;    ///< [R, D]
  at::Tensor labels;  ///< int64 [R]
};
/// @param rows  of the model behind the batch's tokens, [N, D]
ScoredRows scored_rows(const at::Tensor& rows, const train::Prepared& batch);

/// A text as a model is asked for it.
struct ScoredText {
  std::shared_ptr<const data::Documents> documents;
  std::optional<data::TextSizes> sizes;  ///< where bytes and words are counted
  bool by_line = false;                  ///< whether a document is a line, with its end
  int64_t begin = -1;                    ///< the token in front of a text; -1 = the separator
};

/// Opens a text for evaluation: tokenised, with its sizes. Throws as data::open_documents() does.
/// @param key  that names the paths: "data.valid"
ScoredText open_scored_text(const experiment::Experiment& experiment,
                            const text::Tokenizer& tokenizer, const std::vector<std::string>& paths,
                            const std::string& key);

/// Sums over a text. Numbers are made of them: first all sums, then the exponent.
struct TextScore {
  double nll = 0;   ///< sum over scored tokens, natural logarithm
  double loss = 0;  ///< the same with label smoothing
  int64_t tokens = 0;
  /// The text that these tokens are; 0 where it was not counted. Words have an end for each
  /// document that is counted.
  int64_t bytes = 0, words = 0;

  double mean_nll() const { return nll / static_cast<double>(tokens); }
};

/// loss, nll, ppl, bits_per_byte, word_ppl: those that are known. A perplexity of words beyond 1e15
/// is left out: the text has no words to speak of.
std::vector<train::Score> scores_of(const TextScore& score);

inline constexpr const char* kSeparatorWords = "a separator";
/// What a token is predicted from, in words: "windows of 256 tokens …", "state carried …".
/// @param begin  what stands in front of a text
std::string context_words(const experiment::LanguageModelOptions& options,
                          const std::string& begin = kSeparatorWords);
/// What is counted, in words: "ends of lines counted".
std::string count_words(const experiment::LanguageModelOptions& options);

/// Scores a text as `[eval]` says. Throws Error(kBadData) where it is too short for eval.lanes.
/// @param model  in the mode of evaluation
/// @param name   of the text, for messages
TextScore score_text(models::CausalModel& model, const experiment::LanguageModelOptions& options,
                     const ScoredText& text, const std::string& name,
                     const train::EvaluationSetup& setup);

/// Each document by itself: the model begins anew, and its first token is predicted from `begin`,
/// as ScoredText has it.
struct DocumentScore {
  double log_prob = 0;  ///< sum over its tokens, natural logarithm
  int64_t tokens = 0;
};
std::vector<DocumentScore> score_documents(models::CausalModel& model,
                                           const experiment::LanguageModelOptions& options,
                                           const data::Documents& documents,
                                           const train::EvaluationSetup& setup, int64_t begin = -1);

}  // namespace stretto::tasks
