#include "data/labelled/labelled_set.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace stretto::data {
namespace {

LabelledFormat format_named(const std::string& name) {
  if (name == "tsv") return LabelledFormat::kTsv;
  if (name == "csv") return LabelledFormat::kCsv;
  if (name == "jsonl") return LabelledFormat::kJsonLines;
  if (name == "label_first") return LabelledFormat::kLabelFirst;
  return LabelledFormat::kByEnding;
}

/// Texts of one file after the other, the second text of a pair behind the first.
class LabelledTextLines : public text::LineSource {
 public:
  explicit LabelledTextLines(const LabelledOptions& options)
      : paths_(options.train), columns_(columns_of(options)), bad_(columns_.bad_samples) {}

  bool next(std::string& line) override {
    if (has_second_) {
      has_second_ = false;
      line = std::move(row_.text2);
      return true;
    }
    while (true) {
      if (!reader_) {
        if (next_path_ == paths_.size()) return false;
        reader_.emplace(paths_[next_path_++], columns_, &bad_);
      }
      if (reader_->next(row_)) break;
      reader_.reset();
    }
    has_second_ = !columns_.text2.empty();
    line = std::move(row_.text);
    return true;
  }

 private:
  std::vector<std::string> paths_;
  LabelledColumns columns_;
  BadSamples bad_;
  std::optional<LabelledReader> reader_;
  LabelledRow row_;
  size_t next_path_ = 0;
  bool has_second_ = false;
};

}  // namespace

LabelledColumns columns_of(const LabelledOptions& options) {
  LabelledColumns columns;
  columns.text = options.text;
  columns.text2 = options.text2;
  columns.label = options.label;
  columns.format = format_named(options.format);
  columns.separator = options.separator;
  columns.header = options.header;
  columns.kind = options.is_regression() ? LabelKind::kNumber : LabelKind::kNames;
  columns.label_separator = options.label_separator;
  columns.label_until = options.label_until;
  columns.skipped_label = options.skipped_label;
  columns.encoding = options.encoding == "latin-1" ? Encoding::kLatin1 : Encoding::kUtf8;
  columns.bad_samples = bad_sample_rule(options);
  return columns;
}

text::TextBound text_bound_of(const LabelledOptions& options) {
  using Bound = text::TextBound;
  return {.max_tokens = options.max_text_tokens,
          .side = options.truncation == "start" ? Bound::Side::kStart : Bound::Side::kEnd,
          .which = options.truncated_text == "first"    ? Bound::Which::kFirst
                   : options.truncated_text == "second" ? Bound::Which::kSecond
                                                        : Bound::Which::kLongest,
          .pairs = !options.text2.empty()};
}

bool finds_labels(const LabelledOptions& options) {
  return !options.is_regression() && options.labels.empty();
}

std::optional<Labels> labels_of(const LabelledOptions& options, const LabelledFacts* training) {
  if (options.is_regression()) return std::nullopt;
  if (!options.labels.empty()) return Labels::given(options.labels);
  return Labels::sorted(training->labels);
}

std::optional<Labels> find_labels(const LabelledOptions& options) {
  if (!finds_labels(options)) return labels_of(options, nullptr);
  LabelledFacts facts;
  scan_labelled({.paths = options.train, .columns = columns_of(options)}, {}, facts);
  return labels_of(options, &facts);
}

std::unique_ptr<text::LineSource> open_labelled_lines(const LabelledOptions& options) {
  return std::make_unique<LabelledTextLines>(options);
}

bool is_sample(const std::optional<LabelledRow>& header,
               const std::function<bool(const std::string&)>& is_label) {
  return header && std::all_of(header->labels.begin(), header->labels.end(), is_label);
}

std::string sample_as_header_text(const std::string& place) {
  return place + " looks like a sample, not like a header, and is not read";
}

Batch empty_labelled_batch(bool has_values) {
  Batch batch = text_batch();
  if (has_values) {
    batch.columns.emplace_back(Ragged<float>{});
  } else {
    batch.columns.emplace_back(PackedTokens{});
  }
  return batch;
}

void require_samples(const LabelledInput& input, const LabelledFacts& facts) {
  if (facts.rows > 0) return;
  std::vector<std::string> without;
  if (facts.left_out.count > 0) without.push_back(printable(facts.left_out.text(), 300));
  if (facts.skipped > 0) {
    without.push_back(counted(facts.skipped, "row") + " labelled `" +
                      printable(input.columns.skipped_label, 60) + "` (data.skipped_label)");
  }
  throw Error(ExitCode::kBadData,
              join(input.paths, ", ") + ": no sample is left without " + join(without, " and "),
              "look for a wrong file or a wrong column");
}

void add_facts(const LabelledInput& input, const LabelledFacts& facts, const Labels* labels,
               LabelledCounts& counts) {
  require_samples(input, facts);
  counts.bad = facts.left_out;
  counts.skipped = facts.skipped;
  const auto is_label = [&](const std::string& name) { return labels->find(name).has_value(); };
  for (const auto& header : facts.headers) {
    if (is_sample(header.row, is_label)) {
      counts.samples_as_header.push_back(place_of(input, header));
    }
  }
}

std::string labels_to_json(const Labels* labels) {
  const auto names = labels == nullptr ? std::vector<std::string>{} : labels->names();
  return nlohmann::json(names).dump(1) + "\n";
}

std::optional<Labels> labels_from_json(const std::string& json, const std::string& where) {
  const auto list = parse_json(json, where, 0);
  const auto refuse = [&](const std::string& what) {
    throw Error(ExitCode::kBadData, where + ": " + what,
                "it is a JSON list of the names of labels, in the order of their numbers");
  };
  if (!list.is_array()) refuse("no list");
  std::vector<std::string> names;
  for (const auto& name : list) {
    if (!name.is_string()) refuse("a label is no string");
    names.push_back(name.get<std::string>());
    if (is_one_line(names.back())) continue;
    throw Error(ExitCode::kBadData,
                where + ": label `" + printable(names.back(), 60) + "` has a tab or a line end",
                "labels are written one a line, so the run cannot be used: train again with labels "
                "without them");
  }
  if (names.empty()) return std::nullopt;
  try {
    return Labels::given(std::move(names));
  } catch (const Error& error) {
    refuse(error.what());
    throw;
  }
}

}  // namespace stretto::data
