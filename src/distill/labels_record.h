#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "distill/label_parts.h"

namespace stretto::distill {

/// `labels.json`: what a folder of labels holds, and how far it is.
struct LabelsRecord {
  std::string fingerprint;           ///< as LabellingSetup::fingerprint
  CutTexts cut;                      ///< Part::text, number and lines follow from the list
  std::vector<uint64_t> bytes = {};  ///< of both files of each text; empty = not joined yet
  /// XXH3-64 of the same files, as hex64(); empty in folders of versions that kept none.
  std::vector<std::string> hashes = {};
  int64_t lines = 0, without_label = 0;  ///< of the joined texts
};

/// FOLDER/labels.json
std::filesystem::path labels_record_path(const std::filesystem::path& folder);

/// The text of the file. @param num_texts  at least as many as the parts name
std::string labels_record_text(const LabelsRecord& record, size_t num_texts);

/// Throws Error(kBadData) for what labels_record_text() does not write.
LabelsRecord parse_labels_record(std::string_view text, const std::string& where);

/// Nothing where there is no such file. Throws as parse_labels_record() and read_file() do.
std::optional<LabelsRecord> read_labels_record(const std::filesystem::path& folder);

}  // namespace stretto::distill
