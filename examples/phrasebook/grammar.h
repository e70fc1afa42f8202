#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stretto::phrasebook {

/// One English sentence, its French translation, and what was put together to make them.
struct Sentence {
  std::string english, french;
  /// "subject noun|verb|object noun", or empty when the sentence lacks one of the three.
  std::string triple;
  /// Shape of the sentence: clause, tense, negation, determiners, ending.
  std::string construction;
};

struct Corpus {
  std::vector<Sentence> train, valid, test;
};

struct CorpusSizes {
  size_t train = 30000, valid = 500, test = 1000;
};

/// Draws a corpus: a pure function of seed and sizes.
///
/// Sentences are distinct, in all three parts together. Each sentence of `valid` and `test` has a
/// triple that no sentence of `train` has, while all of its words and its construction occur in
/// `train`. Each English sentence has one translation: "you" is one man, politely (vous), "they"
/// are men (ils), the speaker is a man.
Corpus generate(uint64_t seed, const CorpusSizes& sizes = {});

}  // namespace stretto::phrasebook
