#include "text/ngram/lexicon.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace stretto::text {
namespace {

[[noreturn]] void fail_lexicon(const std::string& place, int64_t line, const std::string& what) {
  throw Error(ExitCode::kBadData, place + ":" + std::to_string(line) + ": " + what,
              "a lexicon has a word a line, and behind it its labels with spaces between, if they "
              "are not those of the tokenizer");
}

using LabelPlaces = std::unordered_map<std::string_view, int32_t>;

std::vector<int32_t> labels_of(std::string_view names, const LabelPlaces& places,
                               const std::string& place, int64_t line) {
  std::vector<int32_t> labels;
  std::string spaced(names);
  std::replace(spaced.begin(), spaced.end(), '\t', ' ');
  for (const std::string& name : split_words(spaced)) {
    const auto found = places.find(name);
    if (found == places.end())
      fail_lexicon(place, line, "the model has no label `" + printable(name, 40) + "`");
    labels.push_back(found->second);
  }
  return labels;
}

/// Cuts a line behind its word.
std::pair<std::string_view, std::string_view> word_and_names(std::string_view line) {
  const size_t end = std::min(line.find_first_of(" \t"), line.size());
  return {line.substr(0, end), line.substr(end)};
}

}  // namespace

std::vector<LexiconEntry> parse_lexicon(std::string_view text, const std::string& place,
                                        std::span<const std::string> label_names,
                                        const Speller& spell, int64_t& left_out) {
  LabelPlaces places;
  for (size_t i = 0; i < label_names.size(); ++i)
    places.emplace(label_names[i], static_cast<int32_t>(i));
  std::vector<LexiconEntry> entries;
  int64_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string line = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.empty()) continue;
    if (!is_valid_utf8(line)) fail_lexicon(place, number, "not UTF-8");
    const auto [word, names] = word_and_names(line);
    LexiconEntry entry;
    entry.word = word;
    entry.labels = labels_of(names, places, place, number);
    if (entry.labels.empty()) entry.labels = spell(word);
    if (entry.labels.empty()) {
      ++left_out;
    } else {
      entries.push_back(std::move(entry));
    }
  }
  if (entries.empty()) {
    throw Error(ExitCode::kBadData, place + ": no word that the model's labels can spell",
                "a lexicon has a word a line, in the letters of the training text");
  }
  return entries;
}

std::vector<LexiconEntry> read_lexicon(const std::filesystem::path& path,
                                       std::span<const std::string> label_names,
                                       const Speller& spell, int64_t& left_out) {
  return parse_lexicon(read_file(path), path.string(), label_names, spell, left_out);
}

LexiconTrie::LexiconTrie(std::span<const LexiconEntry> entries, std::span<const float> scores) {
  std::vector<uint32_t> order;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!entries[i].labels.empty()) order.push_back(static_cast<uint32_t>(i));
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return entries[a].labels < entries[b].labels; });
  // Entries of a node stand side by side in this order. Nodes are made breadth first, so that the
  // children of each stand side by side, too.
  struct Span {
    size_t begin, end, depth;
  };
  std::vector<Span> spans = {{0, order.size(), 0}};
  nodes_.assign(1, Node{});
  words_.reserve(order.size());
  for (size_t node = 0; node < nodes_.size(); ++node) {
    size_t begin = spans[node].begin;
    const size_t end = spans[node].end, depth = spans[node].depth;
    nodes_[node].best = -std::numeric_limits<float>::infinity();
    for (size_t i = begin; i < end; ++i)
      nodes_[node].best = std::max(nodes_[node].best, scores[order[i]]);
    nodes_[node].first_word = static_cast<uint32_t>(words_.size());
    while (begin < end && entries[order[begin]].labels.size() == depth) {
      // The same word with the same spelling counts once.
      const bool is_known = std::any_of(
          words_.begin() + nodes_[node].first_word, words_.end(),
          [&](uint32_t other) { return entries[other].word == entries[order[begin]].word; });
      if (!is_known) words_.push_back(order[begin]);
      ++begin;
    }
    nodes_[node].num_words = static_cast<uint32_t>(words_.size()) - nodes_[node].first_word;
    nodes_[node].first_child = static_cast<uint32_t>(children_.size());
    while (begin < end) {
      const int32_t label = entries[order[begin]].labels[depth];
      size_t last = begin;
      while (last < end && entries[order[last]].labels[depth] == label) ++last;
      children_.push_back({label, static_cast<uint32_t>(nodes_.size())});
      nodes_.emplace_back();
      spans.push_back({begin, last, depth + 1});
      begin = last;
    }
    nodes_[node].num_children = static_cast<uint32_t>(children_.size()) - nodes_[node].first_child;
  }
}

uint32_t LexiconTrie::child(uint32_t node, int32_t label) const {
  const std::span<const Child> all = children(node);
  const auto place =
      std::lower_bound(all.begin(), all.end(), label,
                       [](const Child& child, int32_t wanted) { return child.label < wanted; });
  return place != all.end() && place->label == label ? place->node : kNone;
}

}  // namespace stretto::text
