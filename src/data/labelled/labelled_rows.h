#pragma once

#include <memory>
#include <optional>
#include <string>

#include "data/labelled/labelled_file.h"
#include "data/lines.h"

namespace stretto::data {

/// What a row of a file has in the columns that are read, before any of it is checked.
class LabelledReader::Rows {
 public:
  virtual ~Rows() = default;
  /// Fills text, text2, line and, with what the label column has, labels: one entry, or those of a
  /// JSON array. @return false at the end of the input
  virtual bool next(LabelledRow& row) = 0;
  /// What the label column has in a header that names no column that is read; else nothing.
  virtual std::optional<std::string> label_of_header() const { return std::nullopt; }
};

/// @param format  not kByEnding
/// Throws as LabelledReader's constructor.
std::unique_ptr<LabelledReader::Rows> open_rows(LineReader lines, const LabelledColumns& columns,
                                                LabelledFormat format);

}  // namespace stretto::data
