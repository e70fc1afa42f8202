// Fuzz target: each input as a file of labelled texts in each format, and as labels.json; the first
// byte has options. Error is the only exception that may come out, and what was accepted is as the
// header says.
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "data/bad_samples.h"
#include "data/labelled/labelled_file.h"
#include "data/labelled/labelled_set.h"
#include "data/labelled/labels.h"
#include "tests/data/memory_stream.h"

namespace {

using namespace stretto;

void require(bool fact) {
  if (!fact) std::abort();
}

constexpr std::array kFormats{data::LabelledFormat::kTsv, data::LabelledFormat::kCsv,
                              data::LabelledFormat::kJsonLines, data::LabelledFormat::kLabelFirst};

data::LabelledColumns columns_of(data::LabelledFormat format, uint8_t choice) {
  const bool is_separated =
      format == data::LabelledFormat::kTsv || format == data::LabelledFormat::kCsv;
  data::LabelledColumns columns{.format = format};
  if ((choice & 4) != 0) columns.header = false;
  if ((choice & 4) != 0 && is_separated) {
    columns.text = "1";
    columns.label = "2";
  }
  if ((choice & 8) != 0) columns.text2 = columns.text;
  if ((choice & 16) != 0) columns.kind = data::LabelKind::kNumber;
  if ((choice & 32) != 0) columns.label_separator = ";";
  if ((choice & 64) != 0) columns.encoding = data::Encoding::kLatin1;
  if ((choice & 128) != 0) columns.skipped_label = "-";
  if ((choice & 1) != 0) columns.separator = ";";
  return columns;
}

/// What is left out is counted, and nothing else is: a reader that skips ends with a row fewer, or
/// at the first fault of the whole file.
void skip_rows(std::string_view bytes, data::LabelledColumns columns) {
  columns.bad_samples = {.skips = true, .most = 5};
  data::BadSamples bad(columns.bad_samples);
  data::LabelledReader reader(std::make_unique<testing::MemoryStream>(bytes), "fuzz", columns,
                              &bad);
  int64_t line = 0;
  for (data::LabelledRow row; reader.next(row);) {
    require(row.line > line && bad.left_out().count <= 5 && !bad.is_stopping());
    line = row.line;
    for (const auto& label : row.labels) require(data::is_one_line(label));
  }
  require(bad.left_out().first.size() == static_cast<size_t>(bad.left_out().count));
  for (const auto& [file, fault] : bad.left_out().first) {
    require(file == "fuzz" && fault.starts_with(":"));
  }
  std::vector<uint64_t> words;
  const std::vector<std::string> files{"fuzz"};
  data::append_left_out(words, bad.left_out(), files);
  data::LeftOut back;
  size_t at = 0;
  require(data::take_left_out(words, at, files, back) && at == words.size());
  require(back.count == bad.left_out().count);
}

void read_rows(std::string_view bytes, const data::LabelledColumns& columns) {
  data::LabelledReader reader(std::make_unique<testing::MemoryStream>(bytes), "fuzz", columns);
  std::vector<std::string> occurring;
  int64_t line = 0;
  for (data::LabelledRow row; reader.next(row);) {
    require(row.line > line);
    line = row.line;
    require(!row.text.empty() && is_valid_utf8(row.text) && is_valid_utf8(row.text2));
    const bool numbers = columns.kind == data::LabelKind::kNumber;
    if (numbers) require(row.labels.empty() && std::isfinite(row.value));
    if (!numbers && columns.label_separator.empty()) require(row.labels.size() == 1);
    require(std::set<std::string>(row.labels.begin(), row.labels.end()).size() ==
            row.labels.size());
    for (const auto& label : row.labels) {
      require(!label.empty() && is_valid_utf8(label));
      occurring.push_back(label);
    }
  }
  if (occurring.empty()) return;
  const auto labels = data::Labels::sorted(occurring);
  for (const auto& alike : data::labels_alike(labels.names())) require(!alike.empty());
  for (const auto& label : occurring) {
    require(labels.name(labels.number_of(label, "fuzz")) == label);
  }
}

void read_label_list(std::string_view bytes) {
  const auto labels = data::labels_from_json(std::string(bytes), "labels.json");
  if (!labels) return;
  const auto again = data::labels_from_json(data::labels_to_json(&*labels), "labels.json");
  require(again && again->names() == labels->names());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  for (const auto format : kFormats) {
    try {
      read_rows(bytes, columns_of(format, data[0]));
    } catch (const stretto::Error&) {
    }
    try {
      skip_rows(bytes, columns_of(format, data[0]));
    } catch (const stretto::Error&) {
    }
  }
  try {
    read_label_list(bytes);
  } catch (const stretto::Error&) {
  }
  return 0;
}
