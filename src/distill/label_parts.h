#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "experiment/family_distillation.h"

namespace stretto::distill {

/// A stretch of a text that one process labels.
struct Part {
  size_t text = 0;     ///< which of the texts
  int64_t number = 0;  ///< of its parts, from 0
  int64_t lines = 0;
};

/// What the cutting of the texts came to.
struct CutTexts {
  std::vector<Part> parts;  ///< text by text
  int64_t lines = 0;        ///< in all parts
  int64_t left_out = 0;     ///< empty lines, and lines that are not UTF-8 or too long
};

/// Lines of one part, for most.
inline constexpr int64_t kPartLines = 5000;

/// Cuts the texts into files of at most `part_lines` lines, FOLDER/text_T/NUMBER.src. Lines that a
/// teacher can say nothing of are left out. Throws as data::open_bytes() does, and Error(kBadData)
/// for a line that lacks its column and for texts without a line that is left.
CutTexts cut_texts(const std::vector<experiment::TextToLabel>& texts,
                   const std::filesystem::path& folder, int64_t part_lines = kPartLines);

/// FOLDER/text_T/NUMBER.src, and the labels of its lines once they are there as a whole.
std::filesystem::path source_of(const Part& part, const std::filesystem::path& folder);
std::filesystem::path labels_of(const Part& part, const std::filesystem::path& folder);

/// How many of the lines of a text have labels in the end.
struct JoinedText {
  experiment::LabelledText files;  ///< FOLDER/text_T.src and FOLDER/text_T.labels
  int64_t lines = 0;               ///< with a label
  int64_t without_label = 0;       ///< the teacher's answer was empty: left out
};

/// Joins the parts of one text, all of which must have their labels. Throws Error(kBadData) for a
/// part whose labels are not as many as its lines.
JoinedText join_parts(const std::vector<Part>& parts, size_t text,
                      const std::filesystem::path& folder);

}  // namespace stretto::distill
