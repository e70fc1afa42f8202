#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/field.h"
#include "data/bad_samples.h"
#include "data/common_fields.h"

namespace stretto::data {

/// `[data]` of labelled texts. A path may be all that open_bytes() takes.
struct LabelledOptions {
  std::vector<std::string> train, valid, test;
  std::string format = "auto";
  std::string separator;
  bool header = true;
  std::string encoding = "utf-8";
  std::string text = "text";
  std::string text2;
  std::string label = "label";
  std::string label_kind = "class";
  std::string label_separator, label_until, skipped_label;
  std::vector<std::string> labels;
  std::string bad_samples = "stop";
  int64_t max_bad_samples = 1000;
  int64_t max_tokens = 4096;
  int64_t max_samples = 0;
  int64_t max_text_tokens = 128;
  std::string truncation = "end";
  std::string truncated_text = "longest";
  double max_unknown = 0.2;
  std::string cache_dir;
  int64_t prefetch = 8;

  static auto file_fields() {
    using namespace config;
    using O = LabelledOptions;
    const Meta path{.is_path = true};
    const Meta free_path{.change = Change::kFree, .is_path = true};
    return Fields{
        field(&O::train, "train", "files of labelled texts for training", any(), path)
            .also_called({"train_file", "train_files"}),
        field(&O::valid, "valid", "files for validation", any(), path)
            .also_called({"dev", "validation_file", "valid_files"}),
        field(&O::test, "test", "files that `stretto eval` takes by default", any(), free_path)
            .also_called({"test_file", "test_files"}),
    };
  }

  /// Keys that say how rows are read, and their labels: what columns_of() and find_labels() go by
  /// (data/labelled/labelled_set.h).
  static auto reading_fields() {
    using namespace config;
    using O = LabelledOptions;
    const Meta reading{.change = Change::kReading};
    return Fields{
        field(&O::format, "format",
              "auto: by the ending, .tsv or .txt, .csv, .jsonl. tsv: tabs, and quotes mean "
              "nothing. csv: commas and quotes (RFC 4180). jsonl: a JSON object a line. "
              "label_first: the first word of a line is its label (TREC)",
              one_of({"auto", "tsv", "csv", "jsonl", "label_first"}), reading)
            .also_called({"file_format", "file_type"}),
        field(
            &O::separator, "separator",
            "what stands between two fields of TSV and CSV, one character such as \";\" or \"|\"; "
            "empty = a tab in TSV, a comma in CSV",
            any(), reading)
            .also_called({"sep", "delimiter", "field_separator", "column_separator"}),
        field(&O::header, "header", "the first line of TSV and CSV has the names of columns", any(),
              reading)
            .also_called({"has_header"}),
        field(&O::encoding, "encoding", "of all files", one_of({"utf-8", "latin-1"}), reading)
            .value_also_called("utf-8", {"utf8"})
            .value_also_called("latin-1", {"latin1", "iso_8859_1", "iso8859_1"}),
        field(&O::text, "text", "column of the text: a name, or a number from 1", any(), reading)
            .also_called({"text_column", "text_column_name", "premise"}),
        field(&O::text2, "text2", "column of the second text of a pair; empty = there is one text",
              any(), reading)
            .also_called({"text2_column", "text_pair"}),
        field(&O::label, "label", "column of the label", any(), reading)
            .also_called({"label_column", "label_column_name"}),
        field(&O::label_kind, "label_kind",
              "class: a name of a class; number: a real number, which is predicted (regression)",
              one_of({"class", "number"}))
            .also_called({"problem_type"})
            .value_also_called("number", {"regression", "score", "float"})
            .value_also_called("class", {"classification", "single_label_classification", "name"}),
        field(&O::label_separator, "label_separator",
              "what stands between the labels of a text that may have several; empty = each has "
              "one label")
            .also_called({"multi_label"}, "set what stands between two labels"),
        field(&O::label_until, "label_until",
              "a label ends before this: \":\" makes DESC of DESC:manner", any(), reading),
        field(&O::skipped_label, "skipped_label",
              "rows with this label are left out and counted: \"-\" of SNLI", any(), reading),
        field(&O::labels, "labels",
              "the labels in the order of their numbers; empty = those of the training data, in "
              "the order of numbers or of letters")
            .also_called({"label_list", "classes", "class_names", "id2label"}),
    }
        .with(bad_sample_fields<O>());
  }

  static auto batch_fields() {
    using namespace config;
    using O = LabelledOptions;
    return Fields{
        max_tokens_field<O>(),
        max_samples_field<O>(),
        field(&O::max_text_tokens, "max_text_tokens",
              "longest text or pair, special tokens included; the rest is cut off and counted",
              between(4, 100000), {.unit = "tokens"})
            .also_called(
                {"max_len", "max_length", "max_seq_len", "max_seq_length", "model_max_length"}),
        field(&O::truncation, "truncation", "which end of a text is cut off",
              one_of({"end", "start"}))
            .also_called({"truncation_side"})
            .value_also_called("end", {"right"})
            .value_also_called("start", {"left"}),
        field(&O::truncated_text, "truncated_text",
              "of a pair the text that is cut; longest: always the longer one, token by token",
              one_of({"longest", "first", "second"}))
            .also_called({"truncation_strategy"})
            .value_also_called("longest", {"longest_first"})
            .value_also_called("first", {"only_first"})
            .value_also_called("second", {"only_second"}),
        max_unknown_field<O>(),
        field(&O::cache_dir, "cache_dir",
              "where texts and their tokens are kept for the next start; empty = stretto in the "
              "user's cache folder",
              any(), {.change = Change::kFree, .is_path = true})
            .also_called({"cache", "dataset_cache_dir"}),
        prefetch_field<O>().also_called({"data_buffer_size"}),
    };
  }

  static auto fields() { return file_fields().with(reading_fields()).with(batch_fields()); }

  bool is_regression() const { return label_kind == "number"; }
  bool has_several_labels() const { return !label_separator.empty(); }
};

}  // namespace stretto::data
