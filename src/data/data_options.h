#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "config/field.h"

namespace stretto::data {

/// `[data]`: parallel text, read in place.
///
/// A path may be plain text, `.gz`, `.zst`, or a member of a zip archive, `FILE.zip:MEMBER`.
/// One side is a list of files; `train_src[i]` and `train_tgt[i]` have equal numbers of lines.
/// With `train_tsv` both sides are columns of one file. All train lists are concatenated, TSV last.
struct DataOptions {
  std::vector<std::string> train_src, train_tgt, train_tsv;
  std::vector<double> train_weights;
  std::vector<std::string> valid_src, valid_tgt, valid_tsv;
  std::vector<std::string> test_src, test_tgt, test_tsv;
  int64_t src_column = 1, tgt_column = 2;
  int64_t max_tokens = 4096;
  int64_t max_sentences = 0;
  int64_t max_src_tokens = 512, max_tgt_tokens = 512;
  double max_ratio = 0;
  std::string invalid_utf8 = "skip";
  std::string too_long = "skip";
  double max_unknown = 0.2;
  std::string cache_dir;
  int64_t prefetch = 8;

  static auto fields() {
    using namespace config;
    using O = DataOptions;
    const Meta path{.is_path = true};
    const Meta free_path{.change = Change::kFree, .is_path = true};
    return std::tuple{
        field(&O::train_src, "train_src", "source side of the training text", any(), path),
        field(&O::train_tgt, "train_tgt", "target side, line for line", any(), path),
        field(&O::train_tsv, "train_tsv", "training text with both sides in one file", any(), path),
        field(&O::train_weights, "train_weights",
              "how often an epoch sees each training file, src/tgt pairs first, then TSV files; "
              "empty = 1 each; 0.5 takes every second pair, drawn by run.seed, the same in every "
              "epoch",
              greater(0)),
        field(&O::valid_src, "valid_src", "source side of the validation text", any(), path),
        field(&O::valid_tgt, "valid_tgt", "target side of the validation text", any(), path),
        field(&O::valid_tsv, "valid_tsv", "validation text with both sides in one file", any(),
              path),
        field(&O::test_src, "test_src", "source side that `stretto eval` takes by default", any(),
              free_path),
        field(&O::test_tgt, "test_tgt", "target side that `stretto eval` takes by default", any(),
              free_path),
        field(&O::test_tsv, "test_tsv", "test text with both sides in one file", any(), free_path),
        field(&O::src_column, "src_column", "column of the source side in TSV files, from 1",
              between(1, 1000)),
        field(&O::tgt_column, "tgt_column", "column of the target side in TSV files, from 1",
              between(1, 1000)),
        field(&O::max_tokens, "max_tokens",
              "bound of max(sum of source, sum of target) real tokens of one micro-batch, "
              "end-of-sentence included",
              at_least(1), {.unit = "tokens"}),
        field(&O::max_sentences, "max_sentences",
              "bound of sentence pairs in one micro-batch; 0 = none", at_least(0),
              {.unit = "sentences"}),
        field(&O::max_src_tokens, "max_src_tokens",
              "longest source sentence, end-of-sentence included", between(1, 100000),
              {.unit = "tokens"}),
        field(&O::max_tgt_tokens, "max_tgt_tokens",
              "longest target sentence, end-of-sentence included", between(1, 100000),
              {.unit = "tokens"}),
        field(&O::max_ratio, "max_ratio",
              "skip pairs whose token counts, end-of-sentence included, differ by more than this "
              "factor; "
              "0 = keep all",
              at_least(0)),
        field(&O::invalid_utf8, "invalid_utf8", "what to do with a line that is not UTF-8",
              one_of({"skip", "replace", "error"})),
        field(&O::too_long, "too_long", "what to do with a training sentence over the bound",
              one_of({"skip", "truncate", "error"})),
        field(&O::max_unknown, "max_unknown",
              "training refuses text of which a larger share of one side's tokens is `<unk>`; it "
              "warns above 0.01",
              between(0, 1), {.change = Change::kFree}),
        field(&O::cache_dir, "cache_dir",
              "where token caches live; empty = stretto in the user's cache folder", any(),
              free_path),
        field(&O::prefetch, "prefetch", "micro-batches that are made ready ahead of the model",
              between(1, 1024), {.unit = "micro-batches", .change = Change::kFree}),
    };
  }
};

}  // namespace stretto::data
