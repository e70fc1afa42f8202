#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/field.h"
#include "data/bad_samples.h"
#include "data/common_fields.h"

namespace stretto::data {

/// `[data]` of tasks that predict each token of a text from those before it. A path may be all that
/// open_bytes() takes.
struct CausalTextOptions {
  std::vector<std::string> train, valid, test;
  std::string format = "documents";
  std::string documents = "file";
  std::string marker = "<|endoftext|>";
  bool keep_blank_lines = true;
  std::string key = "text";
  std::string packing = "stream";
  bool random_start = false;
  int64_t max_text_tokens = 256;
  int64_t max_tokens = 4096;
  int64_t max_samples = 0;
  int64_t lanes = 20;
  int64_t bptt = 70;
  double bptt_deviation = 0;
  double bptt_halved = 0.05;
  double max_unknown = 0.2;
  std::string bad_samples = "stop";
  int64_t max_bad_samples = 1000;
  std::string cache_dir;
  int64_t prefetch = 8;

  static auto reading_fields() {
    using namespace config;
    using O = CausalTextOptions;
    const Meta texts{.is_path = true, .takes_folders = true};
    const Meta free_texts{.change = Change::kFree, .is_path = true, .takes_folders = true};
    const Meta reading{.change = Change::kReading};
    return Fields{
        field(&O::train, "train",
              "training text in UTF-8: plain, .gz, .zst or FILE.zip:MEMBER. A folder, or a "
              "pattern of names, stands for its files in the order of their names",
              any(), texts)
            .also_called({"train_file", "train_files", "train_text", "train_data"}),
        field(&O::valid, "valid", "validation text", any(), texts)
            .also_called({"dev", "validation_file", "valid_files", "val_data"}),
        field(&O::test, "test", "text that `stretto eval` takes by default", any(), free_texts)
            .also_called({"test_file", "test_files"}),
        field(&O::format, "format",
              "lines: an end token behind each line, which is no part of it. documents: the bytes "
              "as they stand there, line ends too, with a separator between documents. jsonl: each "
              "line is a JSON object, and data.key its text",
              one_of({"lines", "documents", "jsonl"}), reading)
            .also_called({"data_format", "file_format", "text_format"})
            .value_also_called("lines", {"line", "line_by_line", "sentences"})
            .value_also_called("documents", {"text", "txt", "plain", "raw"})
            .value_also_called("jsonl", {"json", "json_lines", "ndjson"}),
        field(&O::documents, "documents",
              "where a document ends: file = each file is one; blank_line = at blank lines; marker "
              "= at a line that is data.marker",
              one_of({"file", "blank_line", "marker"}), reading)
            .also_called({"sample_break_mode", "document_separator"})
            .value_also_called("file", {"none", "whole"})
            .value_also_called("blank_line", {"complete_doc", "paragraph"})
            .read_with("format", {"documents"}),
        field(&O::marker, "marker", "the line between two documents", any(), reading)
            .also_called({"eot", "end_of_text", "document_marker"})
            .read_with("documents", {"marker"}),
        field(&O::keep_blank_lines, "keep_blank_lines",
              "a blank line is a line too: its end token is read and predicted, as published "
              "numbers of WikiText have it",
              any(), reading)
            .also_called({"keep_empty_lines"})
            .read_with("format", {"lines"}),
        field(&O::key, "key", "of the text in a JSON object", any(), reading)
            .also_called({"text_column", "text_key", "text_field", "json_key"})
            .read_with("format", {"jsonl"}),
        max_unknown_field<O>(),
        token_cache_field<O>(),
    }
        .with(bad_sample_fields<O>());
  }

  static auto batch_fields() {
    using namespace config;
    using O = CausalTextOptions;
    const std::string model = "model.name";
    return Fields{
        field(&O::packing, "packing",
              "stream: all documents one after the other, cut into sequences of max_text_tokens, "
              "in which a token sees the documents before its own; document: no sequence has two "
              "of them, a longer one is cut",
              one_of({"stream", "document"}))
            .also_called({"pack", "group_texts"})
            .value_also_called("stream", {"packed", "concatenate"})
            .value_also_called("document", {"none", "isolated"})
            .read_with_key(model, {"transformer"}),
        field(&O::random_start, "random_start",
              "each epoch cuts the stream from another place on, drawn from run.seed, and goes on "
              "at its begin where it ends, so that a token has another place in its sequence; "
              "false = the same sequences in each epoch, in another order",
              any())
            .also_called({"rand_start", "random_offset", "shift_each_epoch"})
            .read_with("packing", {"stream"}),
        field(&O::max_text_tokens, "max_text_tokens",
              "longest sequence: so many tokens are predicted, the first of them from the one "
              "before it",
              between(2, 1000000), {.unit = "tokens"})
            .also_called({"block_size", "seq_len", "sequence_length", "seq_length", "context",
                          "max_len", "max_length", "max_seq_len", "max_seq_length",
                          "tokens_per_sample", "model_max_length"})
            .read_with_key(model, {"transformer"}),
        field(&O::max_tokens, "max_tokens", "bound of the tokens of one micro-batch", at_least(1),
              {.unit = "tokens"})
            .also_called({"mini_batch_words", "tokens_per_batch", "batch_tokens"})
            .read_with_key(model, {"transformer"}),
        field(&O::max_samples, "max_samples",
              "bound of sequences in one micro-batch, beside max_tokens; 0 = none", at_least(0),
              {.unit = "samples"})
            .also_called({"max_batch_size", "mini_batch"})
            .also_called({"batch_size", "per_device_train_batch_size", "train_batch_size"},
                         "data.max_tokens bounds a micro-batch too; of a recurrent model it is "
                         "data.lanes")
            .read_with_key(model, {"transformer"}),
        field(&O::lanes, "lanes",
              "of a recurrent model: texts that are read side by side, each of which goes on from "
              "update to update; train.update_freq cuts them into as many micro-batches",
              between(1, 1000000), {.unit = "lanes"})
            .also_called({"num_lanes", "batch_size_lanes"})
            .read_with_key(model, {"lstm"}),
        field(&O::bptt, "bptt",
              "of a recurrent model: tokens of a lane in an update; gradients go back no further",
              between(2, 1000000), {.unit = "tokens"})
            .also_called({"bptt_length", "num_steps", "unroll", "backprop_length"})
            .read_with_key(model, {"lstm"}),
        field(&O::bptt_deviation, "bptt_deviation",
              "stretches vary in length about bptt by so many tokens, and the learning rate of an "
              "update with them (Merity et al. 2017: 5); 0 = all are equal",
              at_least(0), {.unit = "tokens"})
            .also_called({"bptt_std", "seq_len_std"})
            .read_with_key(model, {"lstm"}),
        field(&O::bptt_halved, "bptt_halved", "share of the stretches that vary about half of bptt",
              between(0, 1))
            .also_called({"half_bptt_probability"})
            .read_unless_zero("bptt_deviation"),
        prefetch_field<O>().also_called({"data_buffer_size"}),
    };
  }

  static auto fields() { return reading_fields().with(batch_fields()); }
};

}  // namespace stretto::data
