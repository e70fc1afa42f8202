#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stretto::portraits {

/// A question on a portrait.
struct Question {
  std::string id, text;
  std::string answer;  ///< empty: the portrait does not say
  size_t begin = 0;    ///< bytes of the portrait before the answer
};

/// A few sentences on one or two people, and questions on them.
struct Portrait {
  std::string title;  ///< the names
  std::string text;
  std::vector<Question> questions;
};

struct CorpusSizes {
  size_t train = 2400, valid = 120, test = 300;  ///< portraits
};

struct Corpus {
  std::vector<Portrait> train, valid, test;
};

/// Questions on each portrait.
constexpr size_t kQuestions = 4;

/// The portraits of a seed: a function of seed and sizes alone.
///
/// Two facts of a portrait may be of one kind (two towns, two people with an animal each), so that
/// the question has to be read. About one question in eight has no answer. No text of one part
/// occurs in another one.
Corpus generate(uint64_t seed, const CorpusSizes& sizes = {});

/// Portraits as a file of SQuAD 2.0.
std::string squad_json(const std::vector<Portrait>& portraits);

}  // namespace stretto::portraits
