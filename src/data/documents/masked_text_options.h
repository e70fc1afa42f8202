#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/field.h"
#include "data/bad_samples.h"
#include "data/common_fields.h"

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
        max_tokens_field<O>(),
        max_samples_field<O>(),
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
        max_unknown_field<O>(),
        token_cache_field<O>(),
        prefetch_field<O>().also_called({"data_buffer_size"}),
    }
        .with(bad_sample_fields<O>());
  }
};

}  // namespace stretto::data
