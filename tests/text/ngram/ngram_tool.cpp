// Scores lines of words with an n-gram model, for check_with_kenlm.py:
//
//     ngram_tool MODEL < TEXT
//
// Prints log10 of each word and of the end, a line for each line.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>

#include "base/text.h"
#include "text/ngram/open_ngram_model.h"

int main(int argc, char** argv) {
  using namespace stretto;
  if (argc != 2) {
    std::fputs("usage: ngram_tool MODEL < TEXT\n", stderr);
    return 2;
  }
  try {
    const auto model = text::open_ngram_model(argv[1]);
    std::string line;
    while (std::getline(std::cin, line)) {
      text::NgramState state = model->begin_history();
      for (const std::string& word : split_words(line)) {
        text::NgramState next;
        std::printf("%.9g ", double{model->score(state, model->index(word), next)});
        state = next;
      }
      text::NgramState ignored;
      std::printf("%.9g\n", double{model->score(state, model->end_index(), ignored)});
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
