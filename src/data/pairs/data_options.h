#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/field.h"
#include "data/bad_samples.h"
#include "data/common_fields.h"

namespace stretto::data {

/// `[[data.heads]]`: the text of one of several decoders, `[[model.heads]]`. All other keys of
/// `[data]` hold for it too.
struct HeadDataOptions {
  std::string head;
  std::vector<std::string> train_src, train_tgt, train_tsv;
  std::vector<double> train_weights;
  std::vector<std::string> valid_src, valid_tgt, valid_tsv;
  std::vector<std::string> test_src, test_tgt, test_tsv;
  std::vector<std::string> train_src2, valid_src2, test_src2;
  int64_t src_column = 1, tgt_column = 2;
  int64_t src2_column = 0;
  double repeat = 1;

  static auto fields() {
    using namespace config;
    using O = HeadDataOptions;
    const Meta path{.is_path = true};
    const Meta free_path{.change = Change::kFree, .is_path = true};
    return Fields{
        field(&O::head, "head", "the model.heads.name whose text this is"),
        field(&O::train_src, "train_src", "as data.train_src", any(), path),
        field(&O::train_tgt, "train_tgt", "as data.train_tgt", any(), path),
        field(&O::train_tsv, "train_tsv", "as data.train_tsv", any(), path),
        field(&O::train_weights, "train_weights", "as data.train_weights", greater(0)),
        field(&O::valid_src, "valid_src", "as data.valid_src", any(), path),
        field(&O::valid_tgt, "valid_tgt", "as data.valid_tgt", any(), path),
        field(&O::valid_tsv, "valid_tsv", "as data.valid_tsv", any(), path),
        field(&O::test_src, "test_src", "as data.test_src", any(), free_path),
        field(&O::test_tgt, "test_tgt", "as data.test_tgt", any(), free_path),
        field(&O::test_tsv, "test_tsv", "as data.test_tsv", any(), free_path),
        field(&O::train_src2, "train_src2", "as data.train_src2", any(), path),
        field(&O::valid_src2, "valid_src2", "as data.valid_src2", any(), path),
        field(&O::test_src2, "test_src2", "as data.test_src2", any(), free_path),
        field(&O::src_column, "src_column", "column of the source side in TSV files, from 1",
              between(1, 1000)),
        field(&O::tgt_column, "tgt_column", "column of the target side in TSV files, from 1",
              between(1, 1000)),
        field(&O::src2_column, "src2_column", "as data.src2_column", between(0, 1000)),
        field(&O::repeat, "repeat",
              "how often an epoch sees its micro-batches; 0.5 takes every second of them, so that "
              "two epochs see each once",
              between(0.001, 1000))
            .also_called({"sampling_ratio", "upsampling"}),
    };
  }
};

/// `[data]`: parallel text, read in place.
///
/// A path may be plain text, `.gz`, `.zst`, or a member of a zip archive, `FILE.zip:MEMBER`.
/// One side is a list of files; `train_src[i]` and `train_tgt[i]` have equal numbers of lines.
/// With `train_tsv` both sides are columns of one file. All train lists are concatenated, TSV last.
///
/// Two sources of one target: `train_src2[i]` stands beside `train_src[i]` line for line, or is the
/// column `src2_column` of TSV files. Both are joined when they are read
/// (data/pairs/two_sources.h).
struct DataOptions {
  std::vector<std::string> train_src, train_tgt, train_tsv;
  std::vector<double> train_weights;
  std::vector<std::string> valid_src, valid_tgt, valid_tsv;
  std::vector<std::string> test_src, test_tgt, test_tsv;
  std::vector<std::string> train_src2, valid_src2, test_src2;
  std::vector<HeadDataOptions> heads;
  int64_t src_column = 1, tgt_column = 2;
  int64_t src2_column = 0;
  std::string separator;
  int64_t max_tokens = 4096;
  int64_t max_samples = 0;
  int64_t max_src_tokens = 512, max_tgt_tokens = 512;
  double max_ratio = 0;
  double src_subword_sampling = 0, tgt_subword_sampling = 0;
  std::string invalid_utf8 = "skip";
  std::string too_long = "skip";
  std::string bad_samples = "stop";
  int64_t max_bad_samples = 1000;
  double max_unknown = 0.2;
  std::string cache_dir;
  int64_t prefetch = 8;

  static auto fields() {
    using namespace config;
    using O = DataOptions;
    const Meta path{.is_path = true};
    const Meta free_path{.change = Change::kFree, .is_path = true};
    return Fields{
        field(&O::train_src, "train_src", "source side of the training text", any(), path)
            .also_called(
                {"train_source", "path_src", "src_train", "train_file", "train_sets", "trainpref"})
            .also_called({"train"}, "one list for each side: train_src and train_tgt"),
        field(&O::train_tgt, "train_tgt", "target side, line for line", any(), path)
            .also_called({"train_target", "path_tgt", "tgt_train"}),
        field(&O::train_tsv, "train_tsv", "training text with both sides in one file", any(), path)
            .also_called({"tsv"}),
        field(&O::train_weights, "train_weights",
              "how often an epoch sees each training file, src/tgt pairs first, then TSV "
              "files; empty = 1 each. 0.5 takes every second pair, drawn by run.seed, the same "
              "in every epoch",
              greater(0))
            .also_called(
                {"weights", "weight", "data_weights", "upsample_primary", "sampling_weights"}),
        field(&O::valid_src, "valid_src", "source side of the validation text", any(), path)
            .also_called({"valid_source", "dev_src", "src_valid", "valid_sets", "validation_file",
                          "validpref"})
            .also_called({"valid"}, "one list for each side: valid_src and valid_tgt"),
        field(&O::valid_tgt, "valid_tgt", "target side of the validation text", any(), path)
            .also_called({"valid_target", "dev_tgt", "tgt_valid"}),
        field(&O::valid_tsv, "valid_tsv", "validation text with both sides in one file", any(),
              path),
        field(&O::test_src, "test_src", "source side that `stretto eval` takes by default", any(),
              free_path)
            .also_called({"test_source", "src_test", "test_file", "testpref"}),
        field(&O::test_tgt, "test_tgt", "target side that `stretto eval` takes by default", any(),
              free_path)
            .also_called({"test_target", "tgt_test"}),
        field(&O::test_tsv, "test_tsv", "test text with both sides in one file", any(), free_path),
        field(&O::train_src2, "train_src2",
              "second source of the training text, line for line, for a model of two encoders",
              any(), path),
        field(&O::valid_src2, "valid_src2", "second source of the validation text", any(), path),
        field(&O::test_src2, "test_src2", "second source that `stretto eval` takes by default",
              any(), free_path),
        field(&O::heads, "heads",
              "text of a model with several decoders, a table for each of model.heads"),
        field(&O::src_column, "src_column", "column of the source side in TSV files, from 1",
              between(1, 1000)),
        field(&O::tgt_column, "tgt_column", "column of the target side in TSV files, from 1",
              between(1, 1000)),
        field(&O::src2_column, "src2_column",
              "column of the second source in TSV files, from 1; 0 = there is none",
              between(0, 1000)),
        field(&O::separator, "separator",
              "what stands between two columns of TSV files, one character such as \";\" or \"|\"; "
              "empty = a tab. Quotes mean nothing")
            .also_called({"sep", "delimiter", "field_separator", "column_separator"}),
        field(&O::max_tokens, "max_tokens",
              "bound of max(sum of source, sum of target) real tokens of one micro-batch, "
              "end-of-sentence included",
              at_least(1), {.unit = "tokens"})
            .also_called(
                {"batch_type"},
                "every batch is counted in tokens; data.max_samples bounds its samples too")
            .also_called({"global_batch_size"},
                         "an update is this many tokens times train.update_freq")
            .also_called({"mini_batch_words", "tokens_per_batch", "batch_tokens"})
            .also_called({"mini_batch_fit"}, "the bound is given, not found"),
        field(&O::max_samples, "max_samples",
              "bound of samples in one micro-batch, beside max_tokens; 0 = none", at_least(0),
              {.unit = "samples"})
            .formerly("max_sentences")
            .also_called({"max_sentences", "max_batch_size", "mini_batch", "batch_sentences"})
            .also_called({"batch_size", "per_device_train_batch_size", "train_batch_size"},
                         "data.max_tokens bounds a micro-batch too: raise it where samples alone "
                         "are to count"),
        field(&O::max_src_tokens, "max_src_tokens",
              "longest source sentence, end-of-sentence included; of two sources both together",
              between(1, 100000), {.unit = "tokens"})
            .also_called({"max_len", "max_length", "max_seq_len", "max_seq_length",
                          "max_source_positions", "max_source_length", "src_seq_length",
                          "model_max_length"}),
        field(&O::max_tgt_tokens, "max_tgt_tokens",
              "longest target sentence, end-of-sentence included", between(1, 100000),
              {.unit = "tokens"})
            .also_called({"max_target_positions", "max_target_length", "tgt_seq_length"}),
        field(&O::max_ratio, "max_ratio",
              "skip pairs whose token counts, end-of-sentence included, differ by more than this "
              "factor; "
              "0 = keep all",
              at_least(0))
            .also_called({"length_ratio", "max_length_ratio", "src_tgt_ratio"}),
        field(&O::src_subword_sampling, "src_subword_sampling",
              "draws the segmentation of each source sentence anew in every epoch. A bpe model "
              "leaves out merges with this probability (BPE-dropout, Provilkov et al. 2020: "
              "0.1). Of a unigram model it is alpha (Kudo 2018: 0.1 to 0.5, less is more "
              "uniform). 0 = off. No sentence grows beyond twice its tokens or max_src_tokens, "
              "so that a micro-batch has up to twice max_tokens",
              between(0, 1))
            .also_called({"bpe_dropout", "sentencepiece_alphas", "subword_alpha",
                          "src_subword_alpha", "spm_alpha"}),
        field(&O::tgt_subword_sampling, "tgt_subword_sampling", "the same of target sentences",
              between(0, 1))
            .also_called({"tgt_subword_alpha"}),
        field(&O::invalid_utf8, "invalid_utf8", "what to do with a line that is not UTF-8",
              one_of({"skip", "replace", "error"}))
            .value_also_called("skip", {"ignore", "drop", "remove"})
            .value_also_called("replace", {"fix", "repair"})
            .value_also_called("error", {"strict", "raise"}),
        field(&O::too_long, "too_long", "what to do with a training sentence over the bound",
              one_of({"skip", "truncate", "error"}))
            .also_called({"max_length_crop", "truncation"}, "= \"truncate\"")
            .also_called({"skip_invalid_size_inputs_valid_test"},
                         "validation text is cut, never skipped")
            .value_also_called("truncate", {"crop", "cut"})
            .value_also_called("skip", {"filter", "drop", "ignore"})
            .value_also_called("error", {"raise"}),
        field(&O::max_unknown, "max_unknown",
              "training refuses text of which a larger share of one side's tokens is `<unk>`; it "
              "warns above 0.01",
              between(0, 1), {.change = Change::kFree}),
        token_cache_field<O>(),
        prefetch_field<O>().also_called({"data_buffer_size", "maxi_batch", "bucket_size"}),
    }
        .with(bad_sample_fields<O>());
  }
};

}  // namespace stretto::data
