#include "distill/labels_record.h"

#include <nlohmann/json.hpp>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace stretto::distill {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostRecordBytes = kMaxSmallTextBytes * 64;

[[noreturn]] void throw_damaged_record(const std::string& where, const std::string& what) {
  throw Error(ExitCode::kBadData, where + ": " + what,
              "remove its folder: the texts are then labelled anew");
}

int64_t count_of(const nlohmann::json& json, const char* key, const std::string& where) {
  if (!json.contains(key) || !json[key].is_number_unsigned()) {
    throw_damaged_record(where, std::string("`") + key + "` is no count");
  }
  return json[key].get<int64_t>();
}

void add_parts(const nlohmann::json& lines, size_t text, const std::string& where, CutTexts& cut) {
  if (!lines.is_array()) throw_damaged_record(where, "`parts` is no list of lists");
  int64_t number = 0;
  for (const auto& count : lines) {
    if (!count.is_number_unsigned() || count.get<uint64_t>() > INT32_MAX ||
        count.get<uint64_t>() == 0) {
      throw_damaged_record(where, "a part has no number of lines");
    }
    cut.parts.push_back({.text = text, .number = number++, .lines = count.get<int64_t>()});
    cut.lines += cut.parts.back().lines;
  }
}

void read_hashes(const nlohmann::json& json, const std::string& where, LabelsRecord& record) {
  const auto found = json.find("hashes");
  if (found == json.end()) return;  // of a version that kept none
  const bool whole = found->is_array() && (found->empty() || found->size() == record.bytes.size());
  if (!whole) throw_damaged_record(where, "`hashes` has not one for each size");
  for (const auto& hash : *found) {
    if (!hash.is_string()) throw_damaged_record(where, "`hashes` has no hashes");
    record.hashes.push_back(hash.get<std::string>());
  }
}

}  // namespace

fs::path labels_record_path(const fs::path& folder) {
  return folder / "labels.json";
}

std::string labels_record_text(const LabelsRecord& record, size_t num_texts) {
  std::vector<std::vector<int64_t>> parts(num_texts);
  for (const Part& part : record.cut.parts) parts.at(part.text).push_back(part.lines);
  nlohmann::json json;
  json["fingerprint"] = record.fingerprint;
  json["left_out"] = record.cut.left_out;
  json["lines"] = record.lines;
  json["without_label"] = record.without_label;
  json["bytes"] = record.bytes;
  json["hashes"] = record.hashes;
  json["parts"] = parts;
  return sealed_json(json);
}

LabelsRecord parse_labels_record(std::string_view text, const std::string& where) {
  const auto json = parse_json(text, where, kMostRecordBytes);
  const bool whole = json.is_object() && json.contains("fingerprint") &&
                     json["fingerprint"].is_string() && json.contains("parts") &&
                     json["parts"].is_array() && json.contains("bytes") && json["bytes"].is_array();
  if (!whole) throw_damaged_record(where, "lacks its fingerprint, its parts or its bytes");
  if (!is_intact(json)) throw_damaged_record(where, "has another checksum");
  LabelsRecord record;
  record.fingerprint = json["fingerprint"].get<std::string>();
  record.cut.left_out = count_of(json, "left_out", where);
  record.lines = count_of(json, "lines", where);
  record.without_label = count_of(json, "without_label", where);
  for (size_t i = 0; i < json["parts"].size(); ++i) {
    add_parts(json["parts"][i], i, where, record.cut);
  }
  for (const auto& bytes : json["bytes"]) {
    if (!bytes.is_number_unsigned()) throw_damaged_record(where, "`bytes` has no sizes");
    record.bytes.push_back(bytes.get<uint64_t>());
  }
  if (!record.bytes.empty() && record.bytes.size() != 2 * json["parts"].size()) {
    throw_damaged_record(where, "`bytes` has not two sizes for each text");
  }
  read_hashes(json, where, record);
  return record;
}

std::optional<LabelsRecord> read_labels_record(const fs::path& folder) {
  const fs::path path = labels_record_path(folder);
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::nullopt;
  return parse_labels_record(read_file(path, kMostRecordBytes), path.string());
}

}  // namespace stretto::distill
