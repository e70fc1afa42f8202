#include "tests/add_a_task/label_lines.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "data/lines.h"

namespace stretto::tasks {
namespace {

std::string place_of(const data::LineReader& lines) {
  return lines.name() + ":" + std::to_string(lines.line_number());
}

int64_t number_of(std::string_view label, const Labels& labels, const data::LineReader& lines) {
  const auto found = std::ranges::find(labels, label);
  if (found == labels.end()) {
    throw Error(ExitCode::kBadData,
                place_of(lines) + ": the training text has no label `" + printable(label) + "`",
                "it has " + join(labels, ", "));
  }
  return found - labels.begin();
}

struct LabelledLine {
  std::string_view label, text;
};

LabelledLine cut(std::string_view line, const data::LineReader& lines) {
  const size_t tab = line.find('\t');
  if (tab == std::string_view::npos) {
    throw Error(ExitCode::kBadData, place_of(lines) + ": the line has no tab",
                "write a label, a tab and a text on each line");
  }
  return {line.substr(0, tab), line.substr(tab + 1)};
}

}  // namespace

Labels find_labels(const std::vector<std::string>& files) {
  std::set<std::string> labels;
  for (const auto& file : files) {
    data::LineReader lines(file);
    for (std::string_view line; lines.next(line);) labels.emplace(cut(line, lines).label);
  }
  return {labels.begin(), labels.end()};
}

void add_line(std::string_view line, data::PackedTokens& lines) {
  for (const char byte : line) lines.values.push_back(static_cast<unsigned char>(byte));
  lines.values.push_back('\n');  // no sequence is empty
  lines.close_sequence();
}

data::Batch read_labelled_lines(const std::vector<std::string>& files, const Labels& labels) {
  data::Batch all{.sample_ids = {}, .columns = {data::PackedTokens{}, data::PackedTokens{}}};
  for (const auto& file : files) {
    data::LineReader lines(file);
    for (std::string_view line; lines.next(line);) {
      const auto [label, text] = cut(line, lines);
      all.column<int64_t>(kLabel).append({number_of(label, labels, lines)});
      all.sample_ids.push_back(all.num_sequences());
      add_line(text, all.column<int64_t>(kText));
    }
  }
  return all;
}

LinesByLength::LinesByLength(data::Batch lines) : lines_(std::move(lines)) {
  std::vector<uint32_t> bytes;
  for (int64_t i = 0; i < lines_.num_sequences(); ++i) {
    bytes.push_back(static_cast<uint32_t>(lines_.column<int64_t>(kText).length(i)));
  }
  order_ = data::order_by_length({bytes});
}

data::Batch LinesByLength::empty_batch() const {
  return {.sample_ids = {}, .columns = {data::PackedTokens{}, data::PackedTokens{}}};
}

void LinesByLength::append(int64_t /*epoch*/, int64_t sample, data::Batch& batch) const {
  batch.sample_ids.push_back(sample);
  for (const size_t number : {kText, kLabel}) {
    batch.column<int64_t>(number).append(lines_.column<int64_t>(number).sequence(sample));
  }
}

}  // namespace stretto::tasks
