#include "data/labelled/labelled_set.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/random.h"
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

template <class T>
uint64_t hash_of(std::span<const T> values, uint64_t before) {
  return mix64(before, xxh3_64(values.data(), values.size_bytes()));
}

/// Encodes rows into a set.
class SetBuilder {
 public:
  SetBuilder(const LabelledOptions& options, const text::Tokenizer& tokenizer, const Labels* labels)
      : labels_(labels),
        pairs_(!options.text2.empty()),
        unknown_(tokenizer.specials().unk),
        encoder_(tokenizer, text_bound_of(options)) {
    set_.samples = text_batch();
    if (labels_ == nullptr) {
      set_.samples.columns.emplace_back(Ragged<float>{});
    } else {
      set_.samples.columns.emplace_back(PackedTokens{});
    }
  }

  /// Throws a SampleError for an unknown label.
  void require_labels(const LabelledRow& row, const LabelledReader& reader) const {
    if (labels_ == nullptr) return;
    try {
      for (const auto& name : row.labels) labels_->number_of(name, reader.place(row));
    } catch (const Error& error) {
      throw SampleError::of(error, reader.name());
    }
  }

  /// @param row  whose labels are known
  void add(const LabelledRow& row) {
    const auto text = pairs_ ? encoder_.encode(row.text, row.text2) : encoder_.encode(row.text);
    set_.samples.sample_ids.push_back(set_.size());
    tokens(set_.samples).append(text.ids);
    segments(set_.samples).append(text.segments);
    set_.hash = hash_of<int64_t>(text.ids, set_.hash);
    set_.hash = hash_of<int64_t>(text.segments, set_.hash);
    for (const int64_t id : text.ids) set_.unknown += id == unknown_ && unknown_ >= 0 ? 1 : 0;
    set_.cut_samples += text.num_cut > 0 ? 1 : 0;
    set_.cut_tokens += text.num_cut;
    if (labels_ == nullptr) {
      add_value(static_cast<float>(row.value));
    } else {
      add_labels(row);
    }
  }

  void keep(LabelledRow row) { set_.rows.push_back(std::move(row)); }
  void look_at_header(const LabelledReader& reader) {
    const auto header = reader.header_as_row();
    const auto is_label = [&](const std::string& name) { return labels_->find(name).has_value(); };
    if (is_sample(header, is_label)) set_.samples_as_header.push_back(reader.place(*header));
  }
  void add_skipped(int64_t count) { set_.skipped += count; }
  LabelledSet take(const BadSamples& bad) {
    set_.bad = bad.left_out();
    return std::move(set_);
  }

 private:
  void add_value(float value) {
    set_.samples.column<float>(kLabelColumn).append(std::vector<float>{value});
    set_.hash = hash_of<float>({&value, 1}, set_.hash);
  }

  void add_labels(const LabelledRow& row) {
    std::vector<int64_t> numbers;
    for (const auto& name : row.labels) numbers.push_back(*labels_->find(name));
    set_.hash = hash_of<int64_t>(numbers, set_.hash);
    set_.samples.column<int64_t>(kLabelColumn).append(numbers);
  }

  const Labels* labels_;
  const bool pairs_;
  const int64_t unknown_;
  const text::TextEncoder encoder_;
  LabelledSet set_;
};

[[noreturn]] void throw_none_left(std::span<const std::string> paths, const LeftOut& bad) {
  throw Error(ExitCode::kBadData,
              join(paths, ", ") + ": no sample is left without " + printable(bad.text(), 300),
              "look for a wrong file or a wrong column");
}

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

std::optional<Labels> find_labels(const LabelledOptions& options, int64_t* num_texts) {
  if (num_texts != nullptr) *num_texts = 0;
  if (options.is_regression()) return std::nullopt;
  if (!options.labels.empty()) return Labels::given(options.labels);
  std::unordered_set<std::string> occurring;
  const auto columns = columns_of(options);
  BadSamples bad(columns.bad_samples);
  for (const auto& path : options.train) {
    LabelledReader reader(path, columns, &bad);
    for (LabelledRow row; reader.next(row);) {
      occurring.insert(row.labels.begin(), row.labels.end());
      if (num_texts != nullptr) ++*num_texts;
    }
  }
  return Labels::sorted({occurring.begin(), occurring.end()});
}

std::unique_ptr<text::LineSource> open_labelled_texts(const LabelledOptions& options) {
  return std::make_unique<LabelledTextLines>(options);
}

bool is_sample(const std::optional<LabelledRow>& header,
               const std::function<bool(const std::string&)>& is_label) {
  return header && std::all_of(header->labels.begin(), header->labels.end(), is_label);
}

std::string sample_as_header_text(const std::string& place) {
  return place + " looks like a sample, not like a header, and is not read";
}

LabelledSet read_labelled_set(std::span<const std::string> paths, const LabelledOptions& options,
                              const text::Tokenizer& tokenizer, const Labels* labels,
                              KeepTexts keep) {
  SetBuilder builder(options, tokenizer, labels);
  const auto columns = columns_of(options);
  BadSamples bad(columns.bad_samples);
  int64_t num_samples = 0;
  for (const auto& path : paths) {
    LabelledReader reader(path, columns, &bad);
    for (LabelledRow row; reader.next(row);) {
      try {
        builder.require_labels(row, reader);
      } catch (const SampleError& error) {
        bad.add(error);
        continue;
      }
      if (bad.is_stopping()) continue;  // to encode takes longer than to read
      builder.add(row);
      ++num_samples;
      if (keep == KeepTexts::kYes) builder.keep(std::move(row));
    }
    builder.look_at_header(reader);
    builder.add_skipped(reader.num_skipped());
  }
  if (num_samples == 0 && bad.left_out().count > 0) throw_none_left(paths, bad.left_out());
  return builder.take(bad);
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
