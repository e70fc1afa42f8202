#include "data/labelled/labelled_texts.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "data/cache_files.h"
#include "data/cache_folder.h"
#include "data/cached_inputs.h"
#include "data/start_memory.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;

/// Part of the key: a change of the rules of reading, or of the parts, makes new stores.
constexpr uint64_t kTextsVersion = 1;

/// The parts of a store.
enum TextsPart : size_t {
  kTexts,      ///< all texts, the second one of a pair behind the first
  kTextEnds,   ///< uint64 [texts]
  kLabels,     ///< uint32, of all samples
  kLabelEnds,  ///< uint64 [samples]; nothing of numbers
  kValues,     ///< double [samples]; nothing of labels
  kPlaces,     ///< uint64 [2 * samples]: file and line
  kNames,      ///< of the labels, a line each
  kNumTextsParts,
};

/// Thrown out of a build whose budget ended; nobody else sees it.
struct BudgetEnded {};

/// How rows are read, as text.
std::string reading_text(const LabelledInput& input) {
  const LabelledColumns& c = input.columns;
  std::string text;
  for (const auto& part :
       {c.text, c.text2, c.label, c.separator, c.label_separator, c.label_until, c.skipped_label}) {
    text += sized(part);
  }
  text += c.header ? " header" : "";
  text += c.kind == LabelKind::kNumber ? " number" : "";
  text += c.encoding == Encoding::kLatin1 ? " latin1 2" : "";  // 1: after parsing
  text += c.bad_samples.skips ? " skip" : "";
  return text;
}

/// A key of what the files hold and of how they are read, but for labels.
uint64_t key_without_labels(const LabelledInput& input, const CachedInputs& cached) {
  std::string text = "labelled texts " + std::to_string(kTextsVersion);
  for (size_t i = 0; i < input.paths.size(); ++i) {
    text += "\n" + cached.contents[i] + " " +
            std::to_string(static_cast<int>(format_of(input.paths[i], input.columns)));
  }
  return xxh3_64(text + "\n" + reading_text(input));
}

/// The same with labels that are asked for: rows may then be bad that are good otherwise.
uint64_t key_with_labels(uint64_t key, const Labels& labels) {
  std::string text = "with labels " + hex64(key);
  for (const auto& name : labels.names()) text += sized(name);
  return xxh3_64(text);
}

void store_facts(const LabelledFacts& facts, std::span<const std::string> paths,
                 std::vector<uint64_t>& words) {
  for (const int64_t count : {facts.rows, facts.other_labels, facts.skipped}) {
    words.push_back(static_cast<uint64_t>(count));
  }
  words.push_back(facts.headers.size());
  for (const auto& header : facts.headers) {
    words.push_back(header.file);
    words.push_back(std::bit_cast<uint64_t>(header.row.value));
    words.push_back(header.row.labels.size());
    for (const auto& label : header.row.labels) append_text(words, label);
  }
  append_left_out(words, facts.left_out, paths);
}

bool take_header(std::span<const uint64_t> words, size_t& at, HeaderRow& header) {
  if (words.size() < at + 3) return false;
  header.file = words[at];
  header.row.value = std::bit_cast<double>(words[at + 1]);
  header.row.line = 1;
  const uint64_t num_labels = words[at + 2];
  at += 3;
  for (uint64_t i = 0; i < num_labels; ++i) {
    if (!take_text(words, at, header.row.labels.emplace_back())) return false;
  }
  return true;
}

bool take_facts(std::span<const uint64_t> words, std::span<const std::string> paths,
                LabelledFacts& facts) {
  if (words.size() < 4) return false;
  facts.rows = static_cast<int64_t>(words[0]);
  facts.other_labels = static_cast<int64_t>(words[1]);
  facts.skipped = static_cast<int64_t>(words[2]);
  const uint64_t num_headers = words[3];
  size_t at = 4;
  if (num_headers > paths.size()) return false;
  for (uint64_t i = 0; i < num_headers; ++i) {
    if (!take_header(words, at, facts.headers.emplace_back())) return false;
    if (facts.headers.back().file >= paths.size()) return false;
  }
  return take_left_out(words, at, paths, facts.left_out);
}

std::vector<std::string> lines_in(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// Whether these are ends of `count` pieces of `size` things, one after the other.
bool are_ends(std::span<const uint64_t> ends, size_t count, size_t size) {
  return ends.size() == count && std::is_sorted(ends.begin(), ends.end()) &&
         (ends.empty() ? 0 : ends.back()) == size;
}

bool are_below(std::span<const uint32_t> numbers, size_t bound) {
  return std::all_of(numbers.begin(), numbers.end(),
                     [&](uint32_t number) { return number < bound; });
}

/// Piece `number` of those that end there, of `size` things in all.
IdRange piece_of(std::span<const uint64_t> ends, size_t number, size_t size,
                 const std::string& store) {
  const IdRange piece{.begin = number == 0 ? 0 : ends[number - 1], .end = ends[number]};
  if (piece.begin > piece.end || piece.end > size) throw_damaged_in_use(store);
  return piece;
}

/// Whether the parts belong together, and to these facts: reading relies on it.
bool is_sound(const SampleStore& store, const LabelledFacts& facts, const LabelledInput& input) {
  const auto rows = static_cast<size_t>(facts.rows);
  const size_t num_texts = rows * (input.columns.text2.empty() ? 1 : 2);
  const auto places = store.array<uint64_t>(kPlaces);
  if (facts.rows < 0 || places.size() != rows * 2) return false;
  for (size_t i = 0; i < places.size(); i += 2) {
    if (places[i] >= input.paths.size()) return false;
  }
  if (!are_ends(store.array<uint64_t>(kTextEnds), num_texts, store.part(kTexts).size()))
    return false;
  if (input.columns.kind == LabelKind::kNumber) return store.array<double>(kValues).size() == rows;
  const auto labels = store.array<uint32_t>(kLabels);
  return are_ends(store.array<uint64_t>(kLabelEnds), rows, labels.size()) &&
         are_below(labels, facts.labels.size());
}

bool knows_all(const Labels& labels, std::span<const std::string> names) {
  return std::all_of(names.begin(), names.end(),
                     [&](const std::string& name) { return labels.find(name).has_value(); });
}

class TextLines final : public text::LineSource {
 public:
  explicit TextLines(std::function<std::shared_ptr<const LabelledTexts>()> open)
      : open_(std::move(open)) {}
  uint64_t key() override {
    open();
    return texts_->key();
  }
  bool next(std::string& line) override {
    open();
    if (sample_ == texts_->size()) return false;
    line = is_second_ ? texts_->text2(sample_) : texts_->text(sample_);
    is_second_ = texts_->has_pairs() && !is_second_;
    if (!is_second_) ++sample_;
    return true;
  }

 private:
  void open() {
    if (!texts_) texts_ = open_();
  }

  std::function<std::shared_ptr<const LabelledTexts>()> open_;
  std::shared_ptr<const LabelledTexts> texts_;
  int64_t sample_ = 0;
  bool is_second_ = false;
};

}  // namespace

/// Makes LabelledTexts of one input.
class LabelledTextsBuild {
 public:
  LabelledTextsBuild(const LabelledInput& input, const LabelledCache& cache,
                     const ReadBudget& budget, LabelledFacts& facts)
      : input_(input), cache_(cache), budget_(budget), facts_(facts) {}

  std::shared_ptr<const LabelledTexts> open() {
    try {
      if (auto texts = in_cache()) return texts;
      return made_of(samples_in_memory(kNumTextsParts, reader()), 0);
    } catch (const BudgetEnded&) {
      return nullptr;
    }
  }

 private:
  /// Null where nothing can be told apart or kept; then the files say what is wrong with them.
  std::shared_ptr<const LabelledTexts> in_cache() {
    std::shared_ptr<const LabelledTexts> texts;
    refusal_ = refusal_of([&] {
      const auto begin = std::chrono::steady_clock::now();
      const auto inputs = open_cached_inputs(cache_.dir, input_.paths);
      if (!inputs) return;
      if (budget_.end != std::chrono::steady_clock::time_point::max()) {
        budget_.end += std::chrono::steady_clock::now() - begin;
      }
      texts = find_or_read(inputs->root, key_without_labels(input_, *inputs), inputs->files);
    });
    if (!texts) facts_ = {};  // of a build that was refused
    return texts;
  }

  std::shared_ptr<const LabelledTexts> find_or_read(const fs::path& root, uint64_t key,
                                                    const InputFiles& files) {
    StorePlace place{.root = root,
                     .kind = "labelled_texts",
                     .key = key,
                     .num_parts = kNumTextsParts,
                     .threads = cache_.threads};
    name_ = place.folder().string();
    if (input_.labels != nullptr) {
      auto texts = in_memory(key);
      if (!texts) {
        bool damaged = false;
        auto store = find_samples(place, damaged);
        if (store) texts = kept(made_of(std::move(*store), key));
      }
      if (texts && knows_all(*input_.labels, texts->facts().labels)) return texts;
      place.key = key_with_labels(key, *input_.labels);
      name_ = place.folder().string();
    }
    if (auto texts = in_memory(place.key)) return texts;
    auto store = open_samples(place, [&](SampleStoreWriter& writer) {
      facts_ = {};
      auto words = reader()(writer);
      files.check_unchanged();
      return words;
    });
    return kept(made_of(std::move(store), place.key));
  }

  /// The texts of a store by a name for this process; facts of them name files.
  std::string name_in_memory(uint64_t key) const {
    std::string name = "labelled texts " + hex64(key);
    for (const auto& path : input_.paths) name += "\n" + path;
    return name;
  }

  std::shared_ptr<const LabelledTexts> in_memory(uint64_t key) const {
    return std::static_pointer_cast<const LabelledTexts>(
        StartMemory::find_read(name_in_memory(key)));
  }

  std::shared_ptr<const LabelledTexts> kept(std::shared_ptr<const LabelledTexts> texts) const {
    if (texts) StartMemory::keep_read(name_in_memory(texts->key()), texts);
    return texts;
  }

  /// @return what reads all files into the parts of a store
  StoreBuild reader() const {
    return [this](SampleStoreWriter& writer) {
      uint64_t text_end = 0, label_end = 0;
      const bool has_pairs = !input_.columns.text2.empty();
      const bool has_values = input_.columns.kind == LabelKind::kNumber;
      scan_labelled(input_, budget_, facts_,
                    [&](size_t file, const LabelledRow& row, std::span<const uint32_t> labels) {
                      writer.append(kTexts, row.text);
                      writer.append_value<uint64_t>(kTextEnds, text_end += row.text.size());
                      if (has_pairs) {
                        writer.append(kTexts, row.text2);
                        writer.append_value<uint64_t>(kTextEnds, text_end += row.text2.size());
                      }
                      if (has_values) {
                        writer.append_value<double>(kValues, row.value);
                      } else {
                        writer.append_values<uint32_t>(kLabels, labels);
                        writer.append_value<uint64_t>(kLabelEnds, label_end += labels.size());
                      }
                      writer.append_value<uint64_t>(kPlaces, file);
                      writer.append_value<uint64_t>(kPlaces, static_cast<uint64_t>(row.line));
                    });
      if (!facts_.unread.empty()) throw BudgetEnded();
      for (const auto& name : facts_.labels) {
        writer.append(kNames, name);
        writer.append(kNames, "\n");
      }
      std::vector<uint64_t> words;
      store_facts(facts_, input_.paths, words);
      return words;
    };
  }

  /// Null where the store is none of such texts.
  std::shared_ptr<const LabelledTexts> made_of(SampleStore store, uint64_t key) {
    auto texts = std::make_shared<LabelledTexts>();
    if (!take_facts(store.words(), input_.paths, texts->facts_)) return nullptr;
    texts->facts_.labels = lines_in(store.part(kNames));
    if (!is_sound(store, texts->facts_, input_)) return nullptr;
    texts->paths_ = input_.paths;
    texts->name_ = name_;
    texts->key_ = key;
    texts->refusal_ = refusal_;
    texts->has_pairs_ = !input_.columns.text2.empty();
    texts->store_ = std::move(store);
    return texts;
  }

  const LabelledInput& input_;
  const LabelledCache& cache_;
  ReadBudget budget_;  ///< its time is for rows: what hashing takes is added
  LabelledFacts& facts_;
  std::string name_;  ///< of the store that is looked for
  std::string refusal_;
};

std::string_view LabelledTexts::text_at(size_t number) const {
  const std::string_view texts = store_.part(kTexts);
  const auto [begin, end] =
      piece_of(store_.array<uint64_t>(kTextEnds), number, texts.size(), name_);
  return texts.substr(begin, end - begin);
}

std::string_view LabelledTexts::text(int64_t sample) const {
  return text_at(static_cast<size_t>(sample) * (has_pairs_ ? 2 : 1));
}

std::string_view LabelledTexts::text2(int64_t sample) const {
  return text_at(static_cast<size_t>(sample) * 2 + 1);
}

std::span<const uint32_t> LabelledTexts::labels(int64_t sample) const {
  const auto ends = store_.array<uint64_t>(kLabelEnds);
  const auto number = static_cast<size_t>(sample);
  if (number >= ends.size()) return {};
  const auto all = store_.array<uint32_t>(kLabels);
  const auto [begin, end] = piece_of(ends, number, all.size(), name_);
  const auto own = all.subspan(begin, end - begin);
  if (!are_below(own, facts_.labels.size())) throw_damaged_in_use(name_);
  return own;
}

double LabelledTexts::value(int64_t sample) const {
  return store_.array<double>(kValues)[static_cast<size_t>(sample)];
}

std::string LabelledTexts::place(int64_t sample) const {
  const auto place = store_.array<uint64_t>(kPlaces).subspan(static_cast<size_t>(sample) * 2, 2);
  return paths_.at(place[0]) + ":" + std::to_string(place[1]);
}

std::shared_ptr<const LabelledTexts> open_labelled_texts(const LabelledInput& input,
                                                         const LabelledCache& cache,
                                                         const ReadBudget& budget,
                                                         LabelledFacts& facts) {
  auto texts = LabelledTextsBuild(input, cache, budget, facts).open();
  if (!texts) return texts;
  facts = texts->facts();
  // A store may have been made under another bound.
  if (input.columns.bad_samples.skips) require_within(input.columns.bad_samples, facts.left_out);
  return texts;
}

std::shared_ptr<const LabelledTexts> open_labelled_texts(const LabelledInput& input,
                                                         const LabelledCache& cache) {
  LabelledFacts facts;
  return open_labelled_texts(input, cache, {}, facts);
}

std::unique_ptr<text::LineSource> lines_of(
    std::function<std::shared_ptr<const LabelledTexts>()> open) {
  return std::make_unique<TextLines>(std::move(open));
}

}  // namespace stretto::data
