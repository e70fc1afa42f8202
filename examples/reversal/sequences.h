#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace stretto::reversal {

/// A sentence of symbols with a space between two of them, and the same symbols in reverse order.
struct Pair {
  std::string source, target;
};

/// The source of a pair in two halves, for models that read two sources: "a b c d e" becomes "a b"
/// and "c d e". Only both together say what the target is.
struct Halves {
  std::string first, second;
};
Halves halves_of(const Pair& pair);

struct CorpusSizes {
  size_t train = 10000, valid = 1000, test = 2000;
};

struct Corpus {
  std::vector<Pair> train, valid, test;
};

/// Symbols of the shortest and of the longest sentence.
constexpr size_t kShortest = 5, kLongest = 50;

/// The ten symbols, `a` to `j`, one a line: the vocabulary of both sides.
std::string vocabulary();

/// The corpus of a seed: a function of seed and sizes alone.
///
/// The length of each sentence is uniform in [kShortest, kLongest], and so is each of its symbols
/// among the ten. No two sentences of validation and test are equal, and no sentence of training is
/// one of them. The sizes of validation and test together must be far below 4.6 million, where
/// there would be no more sentences of kShortest symbols.
Corpus generate(uint64_t seed, const CorpusSizes& sizes = {});

}  // namespace stretto::reversal
