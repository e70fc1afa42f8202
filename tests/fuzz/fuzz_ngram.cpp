// libFuzzer target: any bytes as an n-gram model or lexicon; the first byte chooses ARPA, a binary
// file of KenLM (probing or trie), or a lexicon. A model that was read scores words without reading
// outside of its bytes; what is no model is an Error.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tests/fuzz/one_reader.h"
#include "text/ngram/arpa.h"
#include "text/ngram/kenlm_file.h"
#include "text/ngram/lexicon.h"
#include "text/ngram/open_ngram_model.h"
#include "text/ngram/probing_file.h"

namespace {

using namespace stretto;

void require(bool fact) {
  if (!fact) std::abort();
}

void score_words(const text::NgramModel& model) {
  text::NgramState state = model.begin_history();
  for (uint32_t i = 0; i < 40; ++i) {
    text::NgramState next;
    const uint32_t word = (i * 7 + i / 5) % (model.num_words() + 1);
    model.score(state, word, next);
    require(next.length < static_cast<uint32_t>(model.order()));
    require(model.index(model.word(word)) <= model.num_words());
    state = next;
  }
}

void read_arpa_text(const std::string& bytes) {
  const auto lines = text::arpa_lines(bytes);
  const std::string form = text::ProbingFile(*lines, "fuzz").bytes();
  const auto model = text::read_ngram_model(form, "fuzz");
  score_words(*model);
  for (uint32_t i = 0; i < model->num_words(); ++i) {
    require(model->index(model->word(i)) == i);
    require(std::isfinite(model->unigram(i)));
  }
}

void read_lexicon_text(const std::string& bytes) {
  const std::vector<std::string> names = {"a", "b", "|"};
  int64_t left_out = 0;
  const auto entries = text::parse_lexicon(
      bytes, "fuzz", names,
      [](std::string_view word) {
        return word.starts_with("a") ? std::vector<int32_t>(word.size(), 0)
                                     : std::vector<int32_t>();
      },
      left_out);
  const text::LexiconTrie trie(entries, std::vector<float>(entries.size(), -1.0F));
  for (const text::LexiconEntry& entry : entries) {
    uint32_t node = text::LexiconTrie::kRoot;
    for (const int32_t label : entry.labels) node = trie.child(node, label);
    require(node != text::LexiconTrie::kNone && !trie.words(node).empty());
  }
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned /*seed*/) {
  return testing::mutate_for_its_reader(data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  try {
    switch (data[0] % 3) {
      case 0:
        read_arpa_text(bytes);
        break;
      case 1:
        score_words(*text::read_ngram_model(bytes, "fuzz"));
        break;
      default:
        read_lexicon_text(bytes);
    }
  } catch (const Error&) {
  }
  return 0;
}
