#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/squad/question_windows.h"
#include "data/squad/squad_file.h"
#include "text/tokenizer.h"

/// Questions and their tokens, read and made once and kept in the cache for the next start.
namespace stretto::data {

struct QuestionCache {
  std::string dir;      ///< data.cache_dir; empty = the user's cache folder
  int64_t threads = 1;  ///< that verify and tokenise
};

struct StoredQuestions {
  std::shared_ptr<const SquadData> data;
  uint64_t key = 0;  ///< of the files' content and of how they are read; 0 = not in the cache
  bool from_cache = false;   ///< no file of questions was parsed
  std::string refusal = {};  ///< why the system did not let them be kept
};

/// As read_squad(): finds the questions in the cache, or reads the files and keeps them there. They
/// are found by the content of the files, so that a file that moves is the same one. While a
/// StartMemory lives, all calls share them. Where nothing can be kept, each call reads the files.
/// Throws as read_squad(); Error(kBadData) for a file that changes while it is read.
StoredQuestions open_squad(std::span<const std::string> paths, const SquadReading& reading,
                           const QuestionCache& cache);

/// The tokens of all paragraphs and questions: found in the cache beside the questions, or made on
/// several threads and kept there. Throws as tokenize().
QuestionTokens open_question_tokens(const StoredQuestions& questions,
                                    const text::Tokenizer& tokenizer, const QuestionCache& cache);

}  // namespace stretto::data
