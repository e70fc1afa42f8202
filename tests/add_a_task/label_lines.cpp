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

int64_t number_of(std::string_view label, const Labels& labels, const data::LineReader& names) {
  const auto found = std::ranges::find(labels, label);
  if (found == labels.end()) {
    throw Error(ExitCode::kBadData,
                place_of(names) + ": the training text has no label `" + printable(label) + "`",
                "it has " + join(labels, ", "));
  }
  return found - labels.begin();
}

[[noreturn]] void throw_out_of_step(const data::LineReader& longer,
                                    const data::LineReader& shorter) {
  throw Error(ExitCode::kBadData, place_of(longer) + ": " + shorter.name() + " has no such line",
              "give each line of text one line with its label");
}

void add_file(data::LineReader text, data::LineReader names, const Labels& labels,
              data::Batch& all) {
  std::string_view line, name;
  while (text.next(line)) {
    if (!names.next(name)) throw_out_of_step(text, names);
    all.column<int64_t>(kLabel).append({number_of(name, labels, names)});
    all.sample_ids.push_back(all.num_sequences());
    add_line(line, all.column<int64_t>(kText));
  }
  if (names.next(name)) throw_out_of_step(names, text);
}

}  // namespace

Labels find_labels(const std::vector<std::string>& label_files) {
  std::set<std::string> labels;
  for (const auto& file : label_files) {
    data::LineReader names(file);
    for (std::string_view name; names.next(name);) labels.emplace(name);
  }
  return {labels.begin(), labels.end()};
}

void add_line(std::string_view line, data::PackedTokens& lines) {
  for (const char byte : line) lines.values.push_back(static_cast<unsigned char>(byte));
  lines.values.push_back('\n');  // no sequence is empty
  lines.close_sequence();
}

data::Batch read_labelled_lines(const std::vector<std::string>& text_files,
                                const std::vector<std::string>& label_files, const Labels& labels) {
  data::Batch all{.sample_ids = {}, .columns = {data::PackedTokens{}, data::PackedTokens{}}};
  for (size_t i = 0; i < text_files.size(); ++i) {
    add_file(data::LineReader(text_files[i]), data::LineReader(label_files.at(i)), labels, all);
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
