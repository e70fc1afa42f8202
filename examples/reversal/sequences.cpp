#include "examples/reversal/sequences.h"

#include <string_view>
#include <unordered_set>

#include "base/random.h"

namespace stretto::reversal {
namespace {

constexpr std::string_view kSymbols = "abcdefghij";

/// Streams of random numbers: a part that grows does not change the others.
enum class Part : uint64_t { kTrain, kValid, kTest };

std::string spaced(std::string_view symbols) {
  std::string line;
  line.reserve(2 * symbols.size());
  for (const char symbol : symbols) {
    if (!line.empty()) line += ' ';
    line += symbol;
  }
  return line;
}

std::string draw(RandomStream& random, size_t length) {
  std::string symbols(length, ' ');
  for (char& symbol : symbols) symbol = kSymbols[random.below(kSymbols.size())];
  return symbols;
}

/// `count` sentences for which `is_new` holds. A sentence that is drawn again keeps its length:
/// otherwise short ones, which are refused more often, would become rarer.
template <class IsNew>
std::vector<Pair> draw_part(uint64_t seed, Part part, size_t count, const IsNew& is_new) {
  RandomStream random(mix64(seed, static_cast<uint64_t>(part)));
  std::vector<Pair> pairs;
  pairs.reserve(count);
  while (pairs.size() < count) {
    const size_t length = kShortest + random.below(kLongest - kShortest + 1);
    std::string symbols = draw(random, length);
    while (!is_new(symbols)) symbols = draw(random, length);
    const std::string reversed(symbols.rbegin(), symbols.rend());
    pairs.push_back({spaced(symbols), spaced(reversed)});
  }
  return pairs;
}

}  // namespace

// A symbol and the space before it take two bytes.
Halves halves_of(const Pair& pair) {
  const size_t symbols = (pair.source.size() + 1) / 2, end = 2 * (symbols / 2);
  return {.first = pair.source.substr(0, end - 1), .second = pair.source.substr(end)};
}

std::string vocabulary() {
  std::string lines;
  for (const char symbol : kSymbols) lines += std::string(1, symbol) + '\n';
  return lines;
}

Corpus generate(uint64_t seed, const CorpusSizes& sizes) {
  std::unordered_set<std::string> held_out;
  const auto hold_out = [&](const std::string& symbols) { return held_out.insert(symbols).second; };
  const auto is_not_held_out = [&](const std::string& symbols) {
    return !held_out.contains(symbols);
  };
  Corpus corpus;
  corpus.valid = draw_part(seed, Part::kValid, sizes.valid, hold_out);
  corpus.test = draw_part(seed, Part::kTest, sizes.test, hold_out);
  corpus.train = draw_part(seed, Part::kTrain, sizes.train, is_not_held_out);
  return corpus;
}

}  // namespace stretto::reversal
