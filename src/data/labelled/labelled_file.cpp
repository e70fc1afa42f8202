#include "data/labelled/labelled_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "data/labelled/labelled_rows.h"
#include "data/labelled/labels.h"

namespace stretto::data {
namespace {

LabelledFormat format_by_ending(const std::string& name) {
  const InputPath input = parse_input_path(name);
  std::filesystem::path file(input.member.empty() ? input.file.string() : input.member);
  if (file.extension() == ".gz" || file.extension() == ".zst") file = file.stem();
  const std::string ending = file.extension().string();
  if (ending == ".tsv" || ending == ".txt") return LabelledFormat::kTsv;
  if (ending == ".csv") return LabelledFormat::kCsv;
  if (ending == ".jsonl" || ending == ".ndjson") return LabelledFormat::kJsonLines;
  throw Error(ExitCode::kUsage,
              name + ": the ending `" + printable(ending) + "` does not tell the format",
              "give the format; the endings .tsv, .txt, .csv, .jsonl and .ndjson tell it");
}

/// The bytes of Latin-1 in UTF-8.
class Latin1 final : public ByteStream {
 public:
  explicit Latin1(std::unique_ptr<ByteStream> bytes) : bytes_(std::move(bytes)) {}

  size_t read(char* buffer, size_t capacity) override {
    const size_t half = capacity / 2;  // a byte becomes two at most
    const char* from = buffer + (capacity - half);
    const size_t size = bytes_->read(buffer + (capacity - half), half);
    char* to = buffer;
    for (size_t i = 0; i < size; ++i) {
      const auto byte = static_cast<unsigned char>(from[i]);
      if (byte >= 0x80) *to++ = static_cast<char>(0xC0 | (byte >> 6));
      *to++ = static_cast<char>(byte < 0x80 ? byte : 0x80 | (byte & 0x3F));
    }
    return static_cast<size_t>(to - buffer);
  }

 private:
  std::unique_ptr<ByteStream> bytes_;
};

std::unique_ptr<ByteStream> in_utf8(std::unique_ptr<ByteStream> bytes, Encoding encoding) {
  if (encoding == Encoding::kUtf8) return bytes;
  return std::make_unique<Latin1>(std::move(bytes));
}

std::optional<double> finite_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  if (!is_number || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::vector<std::string> split_at(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + separator.size();
  }
  return parts;
}

}  // namespace

LabelledFormat format_of(const std::string& path, const LabelledColumns& columns) {
  return columns.format == LabelledFormat::kByEnding ? format_by_ending(path) : columns.format;
}

LabelledReader::LabelledReader(const std::string& path, const LabelledColumns& columns,
                               BadSamples* bad)
    : LabelledReader(open_bytes(path), path, columns, bad) {}

LabelledReader::LabelledReader(std::unique_ptr<ByteStream> bytes, const std::string& name,
                               const LabelledColumns& columns, BadSamples* bad)
    : columns_(columns),
      name_(name),
      own_bad_(bad == nullptr ? std::make_unique<BadSamples>(columns.bad_samples) : nullptr),
      bad_(bad == nullptr ? own_bad_.get() : bad) {
  const auto format = format_of(name, columns);
  if (format == LabelledFormat::kLabelFirst) columns_.text2.clear();
  has_labels_ = format == LabelledFormat::kLabelFirst || !columns.label.empty();
  rows_ = open_rows(LineReader(in_utf8(std::move(bytes), columns.encoding), name), columns, format);
}

LabelledReader::~LabelledReader() = default;
LabelledReader::LabelledReader(LabelledReader&&) noexcept = default;
LabelledReader& LabelledReader::operator=(LabelledReader&&) noexcept = default;

std::string LabelledReader::place(const LabelledRow& row) const {
  return name_ + ":" + std::to_string(row.line);
}

std::optional<LabelledRow> LabelledReader::header_as_row() const {
  const auto label = rows_->label_of_header();
  if (!label) return std::nullopt;
  LabelledRow row{.labels = {*label}, .line = 1};
  split_labels(row);
  if (row.labels.empty()) return std::nullopt;
  if (columns_.kind == LabelKind::kNames) return row;
  const auto value = finite_number(row.labels.front());
  if (!value) return std::nullopt;
  row.value = *value;
  row.labels.clear();
  return row;
}

void LabelledReader::refuse(const LabelledRow& row, const std::string& what,
                            const std::string& advice) const {
  throw SampleError(name_, ":" + std::to_string(row.line) + ": " + what, advice);
}

void LabelledReader::throw_no_rows() const {
  const bool skipped = num_bad_ > 0;
  throw Error(ExitCode::kBadData,
              name_ + (skipped ? ": there are no rows but " + counted(num_bad_, "bad sample")
                               : ": there are no rows"),
              columns_.header && !skipped ? "the first record is the header; look for a wrong file"
                                          : "look for a wrong file");
}

void LabelledReader::require_utf8(const LabelledRow& row, const std::string& text) const {
  if (is_valid_utf8(text)) return;
  refuse(row, "not UTF-8",
         "convert the file with `iconv -f latin1 -t UTF-8`, or read it as latin-1 if it is");
}

bool LabelledReader::next(LabelledRow& row) {
  while (true) {
    try {
      if (next_sample(row)) return true;
      break;
    } catch (const SampleError& error) {
      ++num_bad_;
      bad_->add(error);
    } catch (const Error&) {
      bad_->end_file();  // a bad row before this place comes first
      throw;
    }
  }
  bad_->end_file();
  if (num_rows_ + num_skipped_ == 0) throw_no_rows();
  return false;
}

/// The next row that is not left out by its label; false at the end of the file.
bool LabelledReader::next_sample(LabelledRow& row) {
  do {
    if (!rows_->next(row)) return false;
    for (const std::string* text : {&row.text, &row.text2}) require_utf8(row, *text);
    for (const std::string& label : row.labels) require_utf8(row, label);
    split_labels(row);
  } while (is_skipped(row));
  if (trim(row.text).empty() || (!columns_.text2.empty() && trim(row.text2).empty())) {
    refuse(row, "an empty text", "remove the row, or complete it");
  }
  check_labels(row);
  ++num_rows_;
  return true;
}

/// Counts the row if it is to be left out.
bool LabelledReader::is_skipped(const LabelledRow& row) {
  const bool skipped = !columns_.skipped_label.empty() && row.labels.size() == 1 &&
                       row.labels.front() == columns_.skipped_label;
  if (skipped) ++num_skipped_;
  return skipped;
}

/// What the label column has, as labels: one, or several between separators; each cut at its end.
void LabelledReader::split_labels(LabelledRow& row) const {
  const std::string& separator = columns_.label_separator;
  std::vector<std::string> parts = std::move(row.labels);
  if (!separator.empty() && parts.size() == 1) parts = split_at(parts.front(), separator);
  row.labels.clear();
  for (const auto& part : parts) {
    std::string label = trim(part);
    const size_t end =
        columns_.label_until.empty() ? std::string::npos : label.find(columns_.label_until);
    label.resize(std::min(end, label.size()));
    const bool is_new = std::find(row.labels.begin(), row.labels.end(), label) == row.labels.end();
    if (!label.empty() && is_new) row.labels.push_back(std::move(label));
  }
}

void LabelledReader::check_labels(LabelledRow& row) const {
  if (!has_labels_) return;
  if (columns_.kind == LabelKind::kNames) {
    if (columns_.label_separator.empty() && row.labels.size() != 1) {
      refuse(row, row.labels.empty() ? "no label" : "several labels",
             row.labels.empty() ? "complete the row, or remove it"
                                : "give a separator of labels if a text may have several");
    }
    require_one_line(row);
    return;
  }
  const std::string text = row.labels.empty() ? "" : row.labels.front();
  const auto value = finite_number(text);
  if (row.labels.size() != 1 || !value) {
    refuse(row, "label `" + printable(text, 60) + "` is not a finite number",
           "regression takes numbers such as 3.5");
  }
  row.value = *value;
  row.labels.clear();
}

/// Labels are written one a line, with tabs between what stands beside them.
void LabelledReader::require_one_line(const LabelledRow& row) const {
  for (const auto& label : row.labels) {
    if (is_one_line(label)) continue;
    refuse(row, "label `" + printable(label, 60) + "` has a tab or a line end",
           "labels are written one a line: replace it, by a space for instance");
  }
}

}  // namespace stretto::data
