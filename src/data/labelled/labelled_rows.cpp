#include "data/labelled/labelled_rows.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "data/labelled/separated_records.h"
#include "data/separator.h"

namespace stretto::data {
namespace {

[[noreturn]] void refuse_line(const std::string& name, int64_t line, const std::string& what,
                              const std::string& advice) {
  throw SampleError(name, ":" + std::to_string(line) + ": " + what, advice);
}

std::string listed(std::span<const std::string> names) {
  return printable(join(names, ", "), 1000);
}

/// "did you mean `label`? there are text, label"
std::string advice_on_columns(const std::string& wanted, std::span<const std::string> names) {
  const std::string near = closest(wanted, names);
  return (near.empty() ? "" : "did you mean `" + printable(near) + "`? ") + "there are " +
         listed(names);
}

constexpr const char* kJsonLineAdvice =
    "each line is a JSON object on its own, in which each key stands once: repair or remove it";

/// TSV and CSV.
class SeparatedRows final : public LabelledReader::Rows {
 public:
  SeparatedRows(LineReader lines, const LabelledColumns& columns, SeparatedRecords::Kind kind)
      : records_(std::move(lines), kind, columns.separator.empty() ? '\0' : columns.separator[0]),
        has_header_(columns.header) {
    has_first_ = records_.next(first_);
    if (!has_first_) return;
    first_line_ = records_.line_number();
    text_ = *place_of(columns.text, "text");
    text2_ = place_of(columns.text2, "");
    label_ = place_of(columns.label, "");
    num_fields_ = first_.size();
    has_first_ = !has_header_;
    names_column_ = is_name(columns.text) || is_name(columns.text2) || is_name(columns.label);
  }

  bool next(LabelledRow& row) override {
    std::vector<std::string> fields;
    do {
      if (!next_record(fields, row.line)) return false;
    } while (num_fields_ > 1 && fields.size() == 1 && fields.front().empty());
    if (fields.size() != num_fields_) refuse_count(row.line, fields.size());
    row.labels.clear();
    if (label_) row.labels.push_back(fields[*label_]);
    // A column may be read twice.
    row.text2 = text2_ ? fields[*text2_] : std::string();
    row.text = std::move(fields[text_]);
    return true;
  }

  std::optional<std::string> label_of_header() const override {
    if (!has_header_ || names_column_ || !label_) return std::nullopt;
    return first_[*label_];
  }

 private:
  bool is_name(const std::string& column) const {
    return has_header_ && std::find(first_.begin(), first_.end(), column) != first_.end();
  }

  bool next_record(std::vector<std::string>& fields, int64_t& line) {
    if (has_first_) {
      has_first_ = false;
      fields = first_;
      line = first_line_;
      return true;
    }
    const bool any = records_.next(fields);
    line = records_.line_number();
    return any;
  }

  /// The place of a column among the fields; nullopt if none is wanted.
  /// @param needed  what the column is, if there must be one
  std::optional<size_t> place_of(const std::string& column, const std::string& needed) const {
    if (column.empty()) {
      if (needed.empty()) return std::nullopt;
      throw Error(ExitCode::kUsage, records_.name() + ": no column is given for the " + needed,
                  "give a name or a number");
    }
    if (has_header_) {
      const auto named = std::find(first_.begin(), first_.end(), column);
      require_one(named, column);
      if (named != first_.end()) return static_cast<size_t>(named - first_.begin());
    }
    size_t number = 0;
    const auto [end, error] = std::from_chars(column.data(), column.data() + column.size(), number);
    const bool is_number = error == std::errc() && end == column.data() + column.size();
    if (is_number && number >= 1 && number <= first_.size()) return number - 1;
    const std::string what = records_.name() + ": there is no column `" + printable(column) + "`";
    require_separator(what);
    if (has_header_) throw Error(ExitCode::kUsage, what, advice_on_columns(column, first_));
    throw Error(
        ExitCode::kUsage, what,
        "without a header, a column is a number from 1 to " + std::to_string(first_.size()));
  }

  /// Throws with what a first line of one field may be meant to be.
  void require_separator(const std::string& what) const {
    if (first_.size() != 1) return;
    const char other = other_separator(first_.front(), records_.separator());
    if (other == '\0') return;
    throw Error(ExitCode::kUsage,
                what + "; its first line is one column: `" + printable(first_.front(), 60) + "`",
                advice_on_separator(other) +
                    (other == ',' ? ", or data.format = \"csv\" where fields have quotes" : ""));
  }

  /// @param named  the first column of this name, or the end
  void require_one(std::vector<std::string>::const_iterator named,
                   const std::string& column) const {
    if (named == first_.end()) return;
    const auto other = std::find(named + 1, first_.end(), column);
    if (other == first_.end()) return;
    const auto number = [&](auto at) { return std::to_string(at - first_.begin() + 1); };
    throw Error(ExitCode::kUsage,
                records_.name() + ":" + std::to_string(first_line_) + ": columns " + number(named) +
                    " and " + number(other) + " are both named `" + printable(column) + "`",
                "give the number of the one that is meant, or rename the other");
  }

  [[noreturn]] void refuse_count(int64_t line, size_t found) const {
    refuse_line(records_.name(), line,
                counted(static_cast<int64_t>(found), "field") + ", where the " +
                    (has_header_ ? "header" : "first row") + " has " + std::to_string(num_fields_),
                count_advice());
  }

  std::string count_advice() const {
    const char separator = records_.separator();
    if (separator == '\t') return "one tab stands between two fields, and none within a text";
    const std::string shown = separator == ',' ? "commas" : std::string("`") + separator + "`";
    return records_.has_quotes() ? "a field with " + shown + " or line ends is quoted"
                                 : "one `" + std::string(1, separator) +
                                       "` stands between two fields, and none within a text; "
                                       "data.format = \"csv\" reads quoted fields";
  }

  SeparatedRecords records_;
  bool has_header_;
  std::vector<std::string> first_;
  bool has_first_ = false;     ///< still to be given as a row
  bool names_column_ = false;  ///< the header, one that is read
  int64_t first_line_ = 0;
  size_t num_fields_ = 0, text_ = 0;
  std::optional<size_t> text2_, label_;
};

class JsonRows final : public LabelledReader::Rows {
 public:
  JsonRows(LineReader lines, const LabelledColumns& columns)
      : lines_(std::move(lines)), columns_(columns) {}

  bool next(LabelledRow& row) override {
    std::string_view line;
    do {
      if (!lines_.next(line)) return false;
    } while (trim(line).empty());
    row.line = lines_.line_number();
    const auto json = parse_line(line);
    row.text = text_of(json, columns_.text);
    row.text2 = columns_.text2.empty() ? std::string() : text_of(json, columns_.text2);
    row.labels.clear();
    if (columns_.label.empty()) return true;
    const auto& label = member(json, columns_.label);
    if (label.is_array()) {
      for (const auto& one : label) row.labels.push_back(label_text(one));
    } else {
      row.labels.push_back(label_text(label));
    }
    return true;
  }

 private:
  [[noreturn]] void refuse(const std::string& what, const std::string& advice) const {
    refuse_line(lines_.name(), lines_.line_number(), what, advice);
  }

  nlohmann::json parse_line(std::string_view line) const {
    nlohmann::json json;
    try {
      json = parse_json(line, lines_.name(), 0, static_cast<size_t>(lines_.line_number()));
    } catch (const Error& error) {
      throw SampleError::of({error.code(), error.what(), kJsonLineAdvice}, lines_.name());
    }
    if (!json.is_object()) {
      refuse(std::string("must be an object, is ") + json.type_name(),
             "each line is a JSON object on its own");
    }
    return json;
  }

  const nlohmann::json& member(const nlohmann::json& json, const std::string& key) const {
    const auto found = json.find(key);
    if (found != json.end()) return *found;
    std::vector<std::string> keys;
    for (const auto& item : json.items()) keys.push_back(item.key());
    refuse("there is no `" + printable(key) + "`", advice_on_columns(key, keys));
  }

  std::string text_of(const nlohmann::json& json, const std::string& key) const {
    const auto& value = member(json, key);
    if (value.is_string()) return value.get<std::string>();
    refuse("`" + printable(key) + "` must be a string, is " + value.type_name(),
           "texts are strings");
  }

  /// A string, or a number or truth value as JSON writes it.
  std::string label_text(const nlohmann::json& label) const {
    if (label.is_string()) return label.get<std::string>();
    if (label.is_number() || label.is_boolean()) return label.dump();
    refuse(
        "`" + printable(columns_.label) + "` must be a string or a number, is " + label.type_name(),
        "an array of them gives several labels");
  }

  LineReader lines_;
  LabelledColumns columns_;
};

class LabelFirstRows final : public LabelledReader::Rows {
 public:
  explicit LabelFirstRows(LineReader lines) : lines_(std::move(lines)) {}

  bool next(LabelledRow& row) override {
    std::string_view line;
    do {
      if (!lines_.next(line)) return false;
    } while (line.empty());
    const size_t end = std::min(line.find_first_of(" \t"), line.size());
    row.line = lines_.line_number();
    row.labels = {std::string(line.substr(0, end))};
    row.text = trim(line.substr(end));
    row.text2.clear();
    return true;
  }

 private:
  LineReader lines_;
};

}  // namespace

std::unique_ptr<LabelledReader::Rows> open_rows(LineReader lines, const LabelledColumns& columns,
                                                LabelledFormat format) {
  using Kind = SeparatedRecords::Kind;
  switch (format) {
    case LabelledFormat::kJsonLines:
      return std::make_unique<JsonRows>(std::move(lines), columns);
    case LabelledFormat::kLabelFirst:
      return std::make_unique<LabelFirstRows>(std::move(lines));
    case LabelledFormat::kCsv:
      return std::make_unique<SeparatedRows>(std::move(lines), columns, Kind::kCsv);
    default:
      return std::make_unique<SeparatedRows>(std::move(lines), columns, Kind::kTsv);
  }
}

}  // namespace stretto::data
