#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/field.h"
#include "data/bad_samples.h"
#include "data/common_fields.h"
#include "data/squad/answer_options.h"
#include "families/text/text_eval_options.h"
#include "models/bert_options.h"
#include "text/text_tokenizer_options.h"

namespace stretto::experiment {

/// `[data]` of question answering: files in the format of SQuAD.
struct QuestionDataOptions {
  std::vector<std::string> train, valid, test;
  int64_t max_tokens = 4096;
  int64_t max_samples = 0;
  int64_t max_text_tokens = 384;
  int64_t stride = 128;
  int64_t max_question_tokens = 64;
  std::string bad_answers = "refuse";
  std::string bad_samples = "stop";
  int64_t max_bad_samples = 1000;
  std::string version = "auto";
  std::string answer_split = "space";
  double max_unknown = 0.2;
  std::string cache_dir;
  int64_t prefetch = 8;

  static auto fields() {
    using namespace config;
    using O = QuestionDataOptions;
    const Meta path{.is_path = true};
    const Meta free_path{.change = Change::kFree, .is_path = true};
    return Fields{
        field(&O::train, "train", "questions with their paragraphs for training", any(), path)
            .also_called({"train_file", "train_files"}),
        field(&O::valid, "valid", "for validation", any(), path)
            .also_called({"dev", "validation_file", "predict_file"}),
        field(&O::test, "test", "what `stretto eval` takes by default", any(), free_path)
            .also_called({"test_file"}),
        field(&O::max_tokens, "max_tokens", "bound of the real tokens of one micro-batch",
              at_least(1), {.unit = "tokens"})
            .also_called({"mini_batch_words", "tokens_per_batch", "batch_tokens"}),
        field(&O::max_samples, "max_samples",
              "bound of samples in one micro-batch, beside max_tokens; 0 = none", at_least(0),
              {.unit = "samples"})
            .also_called({"batch_size", "per_device_train_batch_size", "train_batch_size",
                          "max_batch_size", "mini_batch"},
                         "data.max_tokens bounds a micro-batch too"),
        field(&O::max_text_tokens, "max_text_tokens",
              "longest sequence of question and paragraph, special tokens included; a longer "
              "paragraph is read in windows that overlap",
              between(8, 100000), {.unit = "tokens"})
            .also_called({"max_len", "max_length", "max_seq_len", "max_seq_length", "max_sequence",
                          "max_sequence_length"}),
        field(&O::stride, "stride", "tokens from the begin of one window to that of the next",
              at_least(1), {.unit = "tokens"})
            .also_called({"window_stride"})
            .also_called({"doc_stride"},
                         "it is the step between windows; doc_stride of run_qa.py is what they "
                         "share"),
        field(&O::max_question_tokens, "max_question_tokens", "a longer question loses its end",
              at_least(1), {.unit = "tokens"})
            .also_called({"max_query_length", "max_question", "max_question_length"}),
        field(&O::bad_answers, "bad_answers",
              "what becomes of an answer that is not where its file says: an error, or left out "
              "with its question and counted",
              one_of({"refuse", "skip"}))
            .value_also_called("refuse", {"error", "fail"})
            .value_also_called("skip", {"drop", "ignore", "warn"}),
        field(&O::version, "version",
              "of SQuAD: in 2 a paragraph may not answer a question. auto: 2 if the training "
              "or the evaluated data have such a question, else 1",
              one_of({"auto", "1", "2"}), {.change = Change::kScoring})
            .also_called({"squad_version"})
            .also_called({"version_2_with_negative"}, "= \"2\"")
            .value_also_called("1", {"1.1", "v1", "v1.1", "squad1"})
            .value_also_called("2", {"2.0", "v2", "v2.0", "squad2"}),
        field(&O::answer_split, "answer_split",
              "how scores split an answer into words: space as the scripts of SQuAD, mlqa-zh "
              "as MLQA's for Chinese, cjk with kana too",
              one_of({"space", "mlqa-zh", "cjk"}), {.change = Change::kScoring})
            .also_called({"split"}),
        field(&O::max_unknown, "max_unknown",
              "training refuses text of which more than this share of tokens is unknown",
              between(0, 1), {.change = Change::kFree}),
        field(&O::cache_dir, "cache_dir",
              "where questions and their tokens are kept for the next start; empty = stretto in "
              "the user's cache folder",
              any(), {.change = Change::kFree, .is_path = true})
            .also_called({"cache", "dataset_cache_dir"}),
        data::prefetch_field<O>(),
    }
        .with(data::bad_sample_fields<O>());
  }
};

/// The sections of a configuration with `task.name = "question_answering"`, beside those that every
/// experiment has.
struct QuestionAnsweringOptions {
  static constexpr const char* kName = "question_answering";

  QuestionDataOptions data;
  text::TextTokenizerOptions tokenizer;
  models::BertOptions model;
  TextEvalOptions eval;
  data::AnswerOptions decode;

  static auto fields() {
    using config::field;
    using O = QuestionAnsweringOptions;
    return config::Fields{
        field(&O::data, "data", "questions, each with a paragraph that answers it")
            .also_called({"dataset", "corpus", "datasets"}),
        field(&O::tokenizer, "tokenizer", "from text to ids")
            .also_called({"vocab", "vocabulary", "wordpiece"}),
        field(&O::model, "model", "the network").also_called({"network", "architecture"}),
        field(&O::eval, "eval", "validation while training"),
        field(&O::decode, "decode", "from scores to an answer")
            .also_called({"decoding", "inference", "answer", "postprocessing"}),
    };
  }
};

}  // namespace stretto::experiment
