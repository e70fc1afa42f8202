#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/labelled/labelled_file.h"
#include "data/labelled/labelled_options.h"
#include "data/labelled/labelled_scan.h"
#include "data/labelled/labels.h"
#include "data/text_columns.h"
#include "text/encoded_text.h"
#include "text/tokenizer.h"

namespace stretto::data {

/// Behind data/text_columns.h: of each sample the numbers of its labels, int64, or its value,
/// float, one row.
inline constexpr size_t kLabelColumn = kFirstOwnColumn;

/// How files are read, as the keys of LabelledOptions::reading_fields() say.
LabelledColumns columns_of(const LabelledOptions& options);
text::TextBound text_bound_of(const LabelledOptions& options);

/// The labels of a run: `data.labels`, else those of the training files, in the order of
/// Labels::sorted(). Nothing of regression. Throws as LabelledReader and Labels do.
/// Reads the files, for a look that keeps nothing.
std::optional<Labels> find_labels(const LabelledOptions& options);
/// The same of what was found in the training files; null where labels are listed, or numbers.
std::optional<Labels> labels_of(const LabelledOptions& options, const LabelledFacts* training);
/// Whether labels are those of the training files.
bool finds_labels(const LabelledOptions& options);

/// Each text of the training files, and each second text, as one line: what a tokenizer is trained
/// on. Reads the files, for a look that keeps nothing; training has lines_of().
std::unique_ptr<text::LineSource> open_labelled_lines(const LabelledOptions& options);

/// Whether a header looks like a sample: the data have its labels, too.
/// @param header  LabelledReader::header_as_row()
bool is_sample(const std::optional<LabelledRow>& header,
               const std::function<bool(const std::string&)>& is_label);
/// The message about such a header, and its remedy.
std::string sample_as_header_text(const std::string& place);
inline constexpr const char* kSampleAsHeaderAdvice =
    "data.header = false reads it, where the file has no header";

/// What is counted of encoded texts.
struct LabelledCounts {
  uint64_t hash = 0;  ///< of ids, segments and labels
  int64_t unknown = 0, cut_samples = 0, cut_tokens = 0, skipped = 0;
  LeftOut bad;                                 ///< by `data.bad_samples`
  std::vector<std::string> samples_as_header;  ///< "a.tsv:1", by is_sample()
};

/// Without samples, and with all columns. @param has_values  numbers in the place of labels
Batch empty_labelled_batch(bool has_values);

/// Throws Error(kBadData) for files whose rows were all left out.
void require_samples(const LabelledInput& input, const LabelledFacts& facts);

/// Takes what was found in files into what is told of them. Throws as require_samples().
/// @param labels  null for numbers
void add_facts(const LabelledInput& input, const LabelledFacts& facts, const Labels* labels,
               LabelledCounts& counts);

/// `labels.json`: the names in the order of their numbers, as a JSON list; of no labels "[]".
std::string labels_to_json(const Labels* labels);
/// Nothing for an empty list. Throws Error(kBadData) for anything else but a list of names,
/// and for a name that is_one_line() refuses: runs of earlier versions may have such labels.
std::optional<Labels> labels_from_json(const std::string& json, const std::string& where);

}  // namespace stretto::data
