#include "data/speech/manifest_rows.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "config/load.h"
#include "data/byte_stream.h"
#include "data/labelled/separated_records.h"

namespace stretto::data {
namespace {

enum ManifestColumn : size_t {
  kSoundColumn,
  kTextColumn,
  kOffsetColumn,
  kDurationColumn,
  kIdColumn,
  kSpeakerColumn,
  kBytesColumn,
  kNumManifestColumns
};

/// Names that are in use, the first of which counts.
const std::vector<std::string>& usual_names(size_t column) {
  static const std::array<std::vector<std::string>, kNumManifestColumns> kNames{{
      {"wav_filename", "audio_filepath", "audio_path", "audio", "path", "file", "file_name", "wav"},
      {"transcript", "text", "sentence", "transcription", "normalized_text", "label", "command"},
      {"offset", "start", "begin"},
      {"duration"},
      {"id", "utt_id", "utterance_id", "key"},
      {"speaker", "speaker_id", "spk", "client_id"},
      {"wav_filesize"},
  }};
  return kNames.at(column);
}

/// A row as texts of its columns; what is not there is empty.
using ManifestTexts = std::array<std::string, kNumManifestColumns>;

/// The columns as `[data]` has them.
class ManifestColumns {
 public:
  explicit ManifestColumns(const SpeechDataOptions& options)
      : chosen_{options.path,
                options.text,
                options.offset,
                options.duration,
                options.id,
                options.speaker,
                ""} {}

  /// Names of which the first that is there counts.
  std::span<const std::string> names(size_t column) const {
    const std::string& chosen = chosen_.at(column);
    if (chosen.empty()) return usual_names(column);
    return {&chosen, 1};
  }
  /// Whether a manifest without it is refused.
  bool is_needed(size_t column) const {
    return column == kSoundColumn || column == kTextColumn || !chosen_.at(column).empty();
  }
  static const char* key_of(size_t column) {
    constexpr std::array<const char*, kNumManifestColumns> kKeys{
        "data.path", "data.text", "data.offset", "data.duration", "data.id", "data.speaker", ""};
    return kKeys.at(column);
  }
  std::string missing(size_t column) const {
    const auto wanted = names(column);
    return wanted.size() == 1 ? "no column `" + printable(wanted.front()) + "`"
                              : "none of the columns " + join(wanted, ", ");
  }

 private:
  std::array<std::string, kNumManifestColumns> chosen_;
};

/// A number that is not negative; an empty text is 0.
double number_in(const std::string& text, const std::string& what, const std::string& manifest,
                 int64_t line) {
  const std::string trimmed = trim(text);
  double number = 0;
  if (trimmed.empty()) return number;
  const char* last = trimmed.data() + trimmed.size();
  const auto [end, error] = std::from_chars(trimmed.data(), last, number);
  if (error == std::errc() && end == last && std::isfinite(number) && number >= 0) return number;
  refuse_utterance(manifest, manifest, line,
                   "its " + what + " is no number from 0 on: " + printable(trimmed, 60),
                   "write it as 12.5");
}

UtteranceRow manifest_row(ManifestTexts texts, const std::string& manifest, int64_t line,
                          const SpeechDataOptions& options) {
  UtteranceRow row{.line = line};
  row.shown = trim(texts[kSoundColumn]);
  if (row.shown.empty()) {
    refuse_utterance(manifest, manifest, line, "names no sound",
                     "each row of a manifest names a file");
  }
  row.sound = sound_path(row.shown, manifest, options);
  row.offset = number_in(texts[kOffsetColumn], "offset", manifest, line);
  row.duration = number_in(texts[kDurationColumn], "duration", manifest, line);
  const double bytes = number_in(texts[kBytesColumn], "wav_filesize", manifest, line);
  row.bytes = bytes < 0x1p63 ? static_cast<uint64_t>(bytes) : 0;
  row.text = std::move(texts[kTextColumn]);
  row.id = trim(texts[kIdColumn]);
  row.speaker = trim(texts[kSpeakerColumn]);
  return row;
}

/// CSV and TSV with a header.
class SeparatedUtterances {
 public:
  SeparatedUtterances(LineReader lines, SeparatedRecords::Kind kind, const ManifestColumns& columns)
      : records_(std::move(lines), kind) {
    std::vector<std::string> header;
    if (!records_.next(header)) return;
    num_columns_ = header.size();
    for (auto& name : header) name = trim(name);
    for (size_t column = 0; column < kNumManifestColumns; ++column) {
      places_[column] = place_of(column, header, columns);
    }
  }

  bool next(ManifestTexts& texts, int64_t& line) {
    std::vector<std::string> fields;
    do {
      if (!records_.next(fields)) return false;
    } while (fields.size() == 1 && trim(fields.front()).empty());
    line = records_.line_number();
    for (size_t column = 0; column < kNumManifestColumns; ++column) {
      if (!places_[column]) continue;
      if (*places_[column] >= fields.size()) {
        refuse_utterance(records_.name(), records_.name(), line,
                         "has " + counted(std::ssize(fields), "field") + ", where the header has " +
                             std::to_string(num_columns_),
                         "each row has the columns of the header; a text with a comma stands "
                         "between quotes");
      }
      texts[column] = fields[*places_[column]];  // two columns may be one
    }
    return true;
  }

 private:
  std::optional<size_t> place_of(size_t column, const std::vector<std::string>& header,
                                 const ManifestColumns& columns) const {
    for (const auto& name : columns.names(column)) {
      const auto found = std::find(header.begin(), header.end(), name);
      if (found != header.end()) return static_cast<size_t>(found - header.begin());
    }
    if (!columns.is_needed(column)) return std::nullopt;
    throw Error(ExitCode::kUsage, records_.name() + ":1: the header has " + columns.missing(column),
                "it has " + printable(join(header, ", "), 1000) + "; name the one that counts in " +
                    ManifestColumns::key_of(column));
  }

  SeparatedRecords records_;
  size_t num_columns_ = 0;
  std::array<std::optional<size_t>, kNumManifestColumns> places_;
};

/// A JSON object a line.
class JsonUtterances {
 public:
  JsonUtterances(LineReader lines, const ManifestColumns& columns)
      : lines_(std::move(lines)), columns_(columns) {}

  bool next(ManifestTexts& texts, int64_t& line) {
    std::string_view text;
    do {
      if (!lines_.next(text)) return false;
    } while (trim(text).empty());
    line = lines_.line_number();
    const auto json = object_in(text, line);
    for (size_t column = 0; column < kNumManifestColumns; ++column) {
      texts[column] = text_in(json, column, line);
    }
    return true;
  }

 private:
  nlohmann::json object_in(std::string_view text, int64_t line) const {
    constexpr const char* kAdvice = "each line is a JSON object on its own: repair or remove it";
    nlohmann::json json;
    try {
      json = parse_json(text, lines_.name(), 0, static_cast<size_t>(line));
    } catch (const Error& error) {
      if (error.code() != ExitCode::kBadData) throw;
      throw SampleError::of({error.code(), error.what(), kAdvice}, lines_.name());
    }
    if (!json.is_object()) {
      refuse_utterance(lines_.name(), lines_.name(), line, "is no JSON object", kAdvice);
    }
    return json;
  }

  std::string text_in(const nlohmann::json& json, size_t column, int64_t line) const {
    for (const auto& name : columns_.names(column)) {
      const auto found = json.find(name);
      if (found == json.end() || found->is_null()) continue;
      if (found->is_string()) return found->get<std::string>();
      if (found->is_number()) return found->dump();
      refuse_utterance(lines_.name(), lines_.name(), line,
                       "`" + printable(name) + "` is neither text nor a number",
                       "write the path, and the text, between quotes");
    }
    // Objects may have different keys: a file of long sounds need not say where each begins.
    if (column != kSoundColumn && column != kTextColumn) return "";
    refuse_utterance(lines_.name(), lines_.name(), line, "has " + columns_.missing(column),
                     std::string("name the one that counts in ") + ManifestColumns::key_of(column));
  }

  LineReader lines_;
  const ManifestColumns& columns_;
};

template <class Records>
UtteranceRows rows_from(Records records, const std::string& manifest,
                        const SpeechDataOptions& options, BadSamples& bad) {
  UtteranceRows all{.lists = {manifest}, .rows = {}};
  read_records(manifest, bad, [&] {
    ManifestTexts texts;
    int64_t line = 0;
    if (!records.next(texts, line)) return false;
    all.rows.push_back(manifest_row(std::move(texts), manifest, line, options));
    return true;
  });
  return all;
}

}  // namespace

UtteranceRows read_manifest_rows(LineReader lines, MediaListFormat format,
                                 const SpeechDataOptions& options, BadSamples& bad) {
  const ManifestColumns columns(options);
  const std::string manifest = lines.name();
  if (format == MediaListFormat::kJsonLines) {
    return rows_from(JsonUtterances(std::move(lines), columns), manifest, options, bad);
  }
  const auto kind =
      format == MediaListFormat::kCsv ? SeparatedRecords::Kind::kCsv : SeparatedRecords::Kind::kTsv;
  return rows_from(SeparatedUtterances(std::move(lines), kind, columns), manifest, options, bad);
}

UtteranceRows read_manifest_rows(const std::string& manifest, const SpeechDataOptions& options,
                                 BadSamples& bad) {
  const auto format = media_list_format(manifest);
  return read_manifest_rows(LineReader(manifest), format, options, bad);
}

std::string sound_path(const std::string& path, const std::string& list,
                       const SpeechDataOptions& options) {
  return config::absolute_path(path, options.audio_dir.empty()
                                         ? parse_input_path(list).file.parent_path()
                                         : std::filesystem::path(options.audio_dir));
}

}  // namespace stretto::data
