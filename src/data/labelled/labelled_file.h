#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/bad_samples.h"
#include "data/byte_stream.h"

namespace stretto::data {

enum class LabelledFormat {
  kByEnding,    ///< .tsv or .txt, .csv, .jsonl or .ndjson, before .gz or .zst
  kTsv,         ///< tabs; quotes mean nothing
  kCsv,         ///< commas and quotes, as RFC 4180
  kJsonLines,   ///< a JSON object a line
  kLabelFirst,  ///< the first word of a line is the label, the rest is the text
};

enum class LabelKind {
  kNames,   ///< classes
  kNumber,  ///< a real number, for regression
};

enum class Encoding { kUtf8, kLatin1 };

/// How a file of labelled texts is written, and which of its columns are read.
///
/// A column is named as in the header, or by its number from 1. A file without header has numbers
/// only, and JSON has names only. kLabelFirst has neither: `text` and `label` are not read.
struct LabelledColumns {
  std::string text = "text";
  std::string text2;            ///< of pairs; empty: there is one text
  std::string label = "label";  ///< empty: texts without labels
  LabelledFormat format = LabelledFormat::kByEnding;
  std::string separator;  ///< of TSV and CSV, one byte; empty: as the format has it
  bool header = true;     ///< of TSV and CSV: the first record has the names
  LabelKind kind = LabelKind::kNames;
  /// Between several labels of a text; JSON may have an array of them, too. Empty: exactly one
  /// label.
  std::string label_separator;
  std::string label_until;    ///< a label ends before this: ":" makes DESC of DESC:manner
  std::string skipped_label;  ///< rows with this label are left out and counted: "-" of SNLI
  Encoding encoding = Encoding::kUtf8;
  BadSampleRule bad_samples = {};  ///< for a reader that gets no BadSamples
};

/// The format of a file, by its ending where none is given. Throws Error(kUsage) where that tells
/// none.
LabelledFormat format_of(const std::string& path, const LabelledColumns& columns);

/// One row.
struct LabelledRow {
  std::string text, text2;
  std::vector<std::string> labels;  ///< one; with `label_separator` any number, each once
  double value = 0;                 ///< with LabelKind::kNumber, in the place of `labels`
  int64_t line = 0;                 ///< where it begins, from 1
};

/// Rows of a file, one after the other, in bounded memory. An empty line is no row, unless a row
/// has one column only.
class LabelledReader {
 public:
  /// Opens a path as open_bytes() does, and reads its header. Throws as open_bytes() and next() do,
  /// and Error(kUsage) for a column that is not there, with those that are, or that another one has
  /// the name of. A header of one column that another separator would divide is answered with it.
  /// @param bad  collects bad rows of several files; null: those of this file are collected here
  LabelledReader(const std::string& path, const LabelledColumns& columns,
                 BadSamples* bad = nullptr);
  /// @param name  what messages call the input
  LabelledReader(std::unique_ptr<ByteStream> bytes, const std::string& name,
                 const LabelledColumns& columns, BadSamples* bad = nullptr);
  ~LabelledReader();
  LabelledReader(LabelledReader&&) noexcept;
  LabelledReader& operator=(LabelledReader&&) noexcept;

  /// @return false at the end of the file
  /// A bad row has another number of fields, a value of another type, an empty text, no label, one
  /// with a tab or a line end, one that is no number where it must be one, or what is not UTF-8.
  /// BadSamples leaves it out. Or the other rows are read, and the end of the file throws
  /// Error(kBadData) with file and line of up to ten; the tenth throws at once. Throws it without
  /// line for a file without rows.
  bool next(LabelledRow& row);

  int64_t num_skipped() const { return num_skipped_; }  ///< rows with `skipped_label` so far
  const std::string& name() const { return name_; }
  /// "dev.tsv:17"
  std::string place(const LabelledRow& row) const;
  /// The header as a row, without texts, where it may be a sample: columns are numbers, none of
  /// them is named so, and there is a label, or the number that LabelKind::kNumber wants.
  std::optional<LabelledRow> header_as_row() const;

  /// A source of raw rows: a text, or two, and what the label column has.
  class Rows;

 private:
  bool next_sample(LabelledRow& row);
  [[noreturn]] void throw_no_rows() const;
  [[noreturn]] void refuse(const LabelledRow& row, const std::string& what,
                           const std::string& advice) const;
  void require_utf8(const LabelledRow& row, const std::string& text) const;
  void split_labels(LabelledRow& row) const;
  bool is_skipped(const LabelledRow& row);
  void check_labels(LabelledRow& row) const;
  void require_one_line(const LabelledRow& row) const;

  LabelledColumns columns_;
  std::string name_;
  std::unique_ptr<Rows> rows_;
  std::unique_ptr<BadSamples> own_bad_;
  BadSamples* bad_;
  bool has_labels_ = false;
  int64_t num_rows_ = 0, num_skipped_ = 0, num_bad_ = 0;
};

}  // namespace stretto::data
