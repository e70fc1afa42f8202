#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/field.h"
#include "data/bad_samples.h"

namespace stretto::data {

/// `[data]` of masked language models: plain text, read as documents. A path may be all that
/// open_bytes() takes.
struct MaskedTextOptions {
  std::vector<std::string> train, valid, test;
  std::string documents = "blank_line";
  std::string packing = "packed";
  int64_t max_text_tokens = 128;
  int64_t max_tokens = 4096;
  int64_t max_samples = 0;
  double mask_probability = 0.15;
  double mask_replace = 0.8, mask_random = 0.1, mask_keep = 0.1;
  bool whole_words = false;
  std::string bad_samples = "stop";
  int64_t max_bad_samples = 1000;
  double max_unknown = 0.2;
  std::string cache_dir;
  int64_t prefetch = 8;

  static auto fields() {
    using namespace config;
    using O = MaskedTextOptions;
    const Meta texts{.is_path = true, .takes_folders = true};
    const Meta free_texts{.change = Change::kFree, .is_path = true, .takes_folders = true};
    const Meta free_path{.change = Change::kFree, .is_path = true};
    return Fields{
        field(&O::train, "train",
              "training text in UTF-8: plain, .gz, .zst or FILE.zip:MEMBER. A folder, or a "
              "pattern of names, stands for its files in the order of their names",
              any(), texts)
            .also_called({"train_file", "train_files", "train_text"}),
        field(&O::valid, "valid", "validation text", any(), texts)
            .also_called({"dev", "validation_file", "valid_files"}),
        field(&O::test, "test", "text that `stretto eval` takes by default", any(), free_texts)
            .also_called({"test_file", "test_files"}),
        field(&O::documents, "documents",
              "where a document ends: blank_line = at a blank line; line = each line is one",
              one_of({"blank_line", "line"}))
            .also_called({"sample_break_mode", "document_separator"})
            .also_called({"line_by_line"}, "= \"line\", with data.packing = \"document\"")
            .value_also_called("blank_line", {"complete_doc", "paragraph"})
            .value_also_called("line", {"eos", "lines"}),
        field(&O::packing, "packing",
              "packed: documents one after the other, with separators, cut into sequences of "
              "max_text_tokens; document: one document a sequence, a longer one is cut",
              one_of({"packed", "document"}))
            .also_called({"pack", "group_texts"})
            .value_also_called("packed", {"concatenate"})
            .value_also_called("document", {"none"}),
        field(&O::max_text_tokens, "max_text_tokens", "longest sequence, special tokens included",
              between(8, 100000), {.unit = "tokens"})
            .also_called({"max_sequence", "max_len", "max_length", "max_seq_len", "max_seq_length",
                          "tokens_per_sample", "block_size", "model_max_length"}),
        field(&O::max_tokens, "max_tokens",
              "bound of the real tokens of one micro-batch, special ones included", at_least(1),
              {.unit = "tokens"})
            .also_called({"mini_batch_words", "tokens_per_batch", "batch_tokens"}),
        field(&O::max_samples, "max_samples",
              "bound of samples in one micro-batch, beside max_tokens; 0 = none", at_least(0),
              {.unit = "samples"})
            .also_called({"max_batch_size", "mini_batch"})
            .also_called({"batch_size", "per_device_train_batch_size", "train_batch_size"},
                         "data.max_tokens bounds a micro-batch too"),
        field(&O::mask_probability, "mask_probability",
              "share of the tokens that are to be found; at least one of each sequence",
              between(0.001, 1))
            .also_called({"mask_prob", "mlm_probability", "masked_lm_prob"}),
        field(&O::mask_replace, "mask_replace", "share of these that become the mask token",
              between(0, 1))
            .also_called({"mask_replace_prob"}),
        field(&O::mask_random, "mask_random", "share of these that become a random token",
              between(0, 1))
            .also_called({"random_token_prob", "random_replace_prob"}),
        field(&O::mask_keep, "mask_keep",
              "share of these that stay as they are; the three add up to 1", between(0, 1))
            .also_called({"leave_unmasked_prob"}),
        field(&O::whole_words, "whole_words", "all sub-words of a word are chosen, or none")
            .also_called({"mask_whole_words", "whole_word_mask", "wwm", "do_whole_word_mask"}),
        field(&O::max_unknown, "max_unknown",
              "training refuses text of which a larger share of tokens is unknown; it warns above "
              "0.01",
              between(0, 1), {.change = Change::kFree}),
        field(&O::cache_dir, "cache_dir",
              "where token caches live; empty = stretto in the user's cache folder", any(),
              free_path)
            .also_called({"cache", "data_dir_cache", "tempdir"}),
        field(&O::prefetch, "prefetch", "micro-batches that are made ready ahead of the model",
              between(1, 1024),
              {.unit = "micro-batches", .change = Change::kFree, .per_process = true})
            .also_called(
                {"num_workers", "dataloader_num_workers", "prefetch_factor", "data_buffer_size"}),
    }
        .with(bad_sample_fields<O>());
  }
};

}  // namespace stretto::data
