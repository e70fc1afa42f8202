#include "data/media/media_rows.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "data/byte_stream.h"
#include "data/labelled/separated_records.h"
#include "data/lines.h"

namespace stretto::data {
namespace {

std::vector<std::string> names_of(const MediaColumns& columns) {
  return {columns.path, columns.text, columns.offset, columns.duration};
}

[[noreturn]] void refuse_row(const std::string& manifest, int64_t line, const std::string& what,
                             const std::string& advice) {
  throw SampleError(manifest, ":" + std::to_string(line) + ": " + what, advice);
}

/// Seconds as text; an empty text is 0.
double seconds_in(const std::string& text, const std::string& column, const std::string& manifest,
                  int64_t line) {
  const std::string number = trim(text);
  double seconds = 0;
  if (number.empty()) return seconds;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), seconds);
  if (error == std::errc() && end == number.data() + number.size() && std::isfinite(seconds) &&
      seconds >= 0) {
    return seconds;
  }
  refuse_row(manifest, line,
             "`" + printable(column) + "` is no number of seconds: " + printable(number, 60),
             "write it as 12.5");
}

/// A row of the texts of its columns, in the order of names_of().
MediaRow row_of_texts(std::array<std::string, 4> texts, const MediaColumns& columns,
                      const std::string& manifest, int64_t line) {
  auto& [path, text, offset, duration] = texts;
  if (path.empty()) {
    refuse_row(manifest, line, "names no file", "each row of a manifest names a file");
  }
  return {.line = line,
          .path = std::move(path),
          .text = std::move(text),
          .offset = seconds_in(offset, columns.offset, manifest, line),
          .duration = seconds_in(duration, columns.duration, manifest, line)};
}

/// CSV and TSV with a header.
class SeparatedMediaRows {
 public:
  SeparatedMediaRows(LineReader lines, const MediaColumns& columns, SeparatedRecords::Kind kind)
      : records_(std::move(lines), kind), columns_(columns) {
    if (!records_.next(header_)) return;
    for (const std::string& name : names_of(columns)) {
      places_.push_back(name.empty() ? std::nullopt : std::optional(place_of(name)));
    }
  }

  bool next(MediaRow& row) {
    std::vector<std::string> fields;
    do {
      if (!records_.next(fields)) return false;
    } while (fields.size() == 1 && trim(fields.front()).empty());
    std::array<std::string, 4> texts;
    for (size_t i = 0; i < texts.size(); ++i) {
      if (!places_[i]) continue;
      if (*places_[i] >= fields.size()) {
        refuse_row(records_.name(), records_.line_number(),
                   counted(std::ssize(fields), "field") + ", where the header has " +
                       std::to_string(header_.size()),
                   "each row has the columns of the header");
      }
      texts[i] = fields[*places_[i]];
    }
    row = row_of_texts(std::move(texts), columns_, records_.name(), records_.line_number());
    return true;
  }

 private:
  size_t place_of(const std::string& name) const {
    const auto found = std::find(header_.begin(), header_.end(), name);
    if (found != header_.end()) return static_cast<size_t>(found - header_.begin());
    throw Error(ExitCode::kUsage,
                records_.name() + ":1: the header has no column `" + printable(name) + "`",
                "it has " + printable(join(header_, ", "), 1000));
  }

  SeparatedRecords records_;
  const MediaColumns& columns_;
  std::vector<std::string> header_;
  std::vector<std::optional<size_t>> places_;  ///< in the order of names_of()
};

/// A JSON object a line.
class JsonMediaRows {
 public:
  JsonMediaRows(LineReader lines, const MediaColumns& columns)
      : lines_(std::move(lines)), columns_(columns) {}

  bool next(MediaRow& row) {
    std::string_view line;
    do {
      if (!lines_.next(line)) return false;
    } while (trim(line).empty());
    const int64_t number = lines_.line_number();
    const auto json = object_in(line, number);
    const auto names = names_of(columns_);
    std::array<std::string, 4> texts;
    for (size_t i = 0; i < texts.size(); ++i) {
      // A file of sounds need not say where each begins.
      const bool is_optional = i >= 2;
      if (names[i].empty() || (is_optional && !json.contains(names[i]))) continue;
      texts[i] = text_in(json, names[i], number);
    }
    row = row_of_texts(std::move(texts), columns_, lines_.name(), number);
    return true;
  }

 private:
  nlohmann::json object_in(std::string_view line, int64_t number) const {
    constexpr const char* kAdvice = "each line is a JSON object on its own: repair or remove it";
    nlohmann::json json;
    try {
      json = parse_json(line, lines_.name(), 0, static_cast<size_t>(number));
    } catch (const Error& error) {
      throw SampleError::of({error.code(), error.what(), kAdvice}, lines_.name());
    }
    if (!json.is_object()) refuse_row(lines_.name(), number, "is no JSON object", kAdvice);
    return json;
  }

  std::string text_in(const nlohmann::json& json, const std::string& name, int64_t number) const {
    const auto found = json.find(name);
    if (found != json.end() && found->is_string()) return found->get<std::string>();
    if (found != json.end() && found->is_number()) return found->dump();
    refuse_row(lines_.name(), number,
               "`" + printable(name) + "` " +
                   (found == json.end() ? "is missing" : "is neither text nor a number"),
               "each object has the keys that the configuration names");
  }

  LineReader lines_;
  const MediaColumns& columns_;
};

template <class Rows>
void take_all(Rows rows, BadSamples& bad, const std::function<void(MediaRow)>& take) {
  while (true) {
    try {
      MediaRow row;
      if (!rows.next(row)) break;
      take(std::move(row));
    } catch (const SampleError& error) {
      bad.add(error);
    }
  }
  bad.end_file();
}

}  // namespace

void read_media_rows(LineReader lines, MediaListFormat format, const MediaColumns& columns,
                     BadSamples& bad, const std::function<void(MediaRow)>& take) {
  if (format == MediaListFormat::kJsonLines) {
    take_all(JsonMediaRows(std::move(lines), columns), bad, take);
    return;
  }
  const auto kind =
      format == MediaListFormat::kCsv ? SeparatedRecords::Kind::kCsv : SeparatedRecords::Kind::kTsv;
  take_all(SeparatedMediaRows(std::move(lines), columns, kind), bad, take);
}

void read_media_rows(const std::string& manifest, const MediaColumns& columns, BadSamples& bad,
                     const std::function<void(MediaRow)>& take) {
  const auto format = media_list_format(manifest);
  read_media_rows(LineReader(manifest), format, columns, bad, take);
}

MediaListFormat media_list_format(const std::string& manifest) {
  const auto parsed = parse_input_path(manifest);
  std::filesystem::path name =
      parsed.member.empty() ? parsed.file : std::filesystem::path(parsed.member);
  if (name.extension() == ".gz" || name.extension() == ".zst") name = name.stem();
  const std::string ending = name.extension().string();
  if (ending == ".csv") return MediaListFormat::kCsv;
  if (ending == ".tsv") return MediaListFormat::kTsv;
  if (ending == ".jsonl" || ending == ".json") return MediaListFormat::kJsonLines;
  throw Error(ExitCode::kUsage,
              manifest + ": is no manifest by its ending: .csv, .tsv or .jsonl is needed",
              "rename it after what it has: commas, tabs, or a JSON object a line");
}

DataFile media_manifest(std::string key, std::string path, const MediaColumns& columns,
                        const BadSampleRule& rule) {
  return {.key = std::move(key),
          .path = std::move(path),
          .kind = DataKind::kManifest,
          .rows = [columns, rule](const std::string& manifest,
                                  const std::function<void(const NamedFile&)>& take) {
            BadSamples bad(rule);
            read_media_rows(manifest, columns, bad, [&](MediaRow row) {
              take({.line = row.line, .path = std::move(row.path)});
            });
          }};
}

}  // namespace stretto::data
