#include "text/ngram/ngram_model.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/text/ngram/random_ngrams.h"
#include "tests/text/ngram/small_arpa.h"
#include "tests/text/ngram/trie_bytes.h"
#include "text/ngram/arpa.h"
#include "text/ngram/kenlm_file.h"
#include "text/ngram/open_ngram_model.h"
#include "text/ngram/probing_file.h"

namespace stretto::text {
namespace {

using stretto::testing::kSmallArpa;
using stretto::testing::RandomNgrams;
using stretto::testing::TempDir;
using stretto::testing::TrieBytes;

/// log10 of each word and of the end.
std::vector<float> word_scores(const NgramModel& model, const std::vector<std::string>& words) {
  std::vector<float> scores;
  NgramState state = model.begin_history();
  for (const std::string& word : words) {
    NgramState next;
    scores.push_back(model.score(state, model.index(word), next));
    state = next;
  }
  NgramState ignored;
  scores.push_back(model.score(state, model.end_index(), ignored));
  return scores;
}

void expect_near(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6F) << i;
}

std::string changed_arpa(const std::string& from, const std::string& to) {
  std::string text = kSmallArpa;
  const size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  return text.replace(place, from.size(), to);
}

std::string arpa_failure(const std::string& text) {
  return testing::failure(ExitCode::kBadData, [&] { read_ngram_model(text, "lm.arpa"); }).message();
}

TEST(NgramModel, TakesTheLongestNgramAndBacksOffToShorterOnes) {
  const auto model = read_ngram_model(kSmallArpa, "lm.arpa");
  EXPECT_EQ(model->order(), 3);
  EXPECT_EQ(model->num_words(), 7U);
  // <s> the; <s> the cat; the cat sat; backoff(cat sat) = 0 + sat </s>
  expect_near(word_scores(*model, {"the", "cat", "sat"}), {-0.3F, -0.1F, -0.2F, -0.7F});
  // backoff(<s>) + a; backoff(a) = 0 + the; the cat; backoff(the cat) + backoff(cat) + </s>
  expect_near(word_scores(*model, {"a", "the", "cat"}), {-2.0F, -0.8F, -0.6F, -1.45F});
}

TEST(NgramModel, AnUnknownWordIsOneAndHasNoHistoryBehindIt) {
  const auto model = read_ngram_model(kSmallArpa, "lm.arpa");
  EXPECT_EQ(model->index("dog"), 0U);
  EXPECT_EQ(model->index("<unk>"), 0U);
  // backoff(<s> the) + backoff(the) + <unk>; then cat alone
  expect_near(word_scores(*model, {"the", "dog", "cat"}), {-0.3F, -2.65F, -1.2F, -1.3F});
}

TEST(NgramModel, HistoriesThatItCannotTellApartAreEqual) {
  const auto model = read_ngram_model(kSmallArpa, "lm.arpa");
  const auto behind = [&](const std::vector<std::string>& words) {
    NgramState state;
    for (const std::string& word : words) {
      NgramState next;
      model->score(state, model->index(word), next);
      state = next;
    }
    return state;
  };
  EXPECT_TRUE(behind({"the", "a"}) == behind({"sat", "a"})) << "nothing goes on behind `a`";
  EXPECT_TRUE(behind({"a", "cat"}) == behind({"sat", "cat"}));
  EXPECT_FALSE(behind({"the", "cat"}) == behind({"a", "cat"}));
}

TEST(NgramModel, KnowsItsWords) {
  const auto model = read_ngram_model(kSmallArpa, "lm.arpa");
  ASSERT_TRUE(model->has_strings());
  for (const std::string word : {"<s>", "</s>", "the", "cat", "sat", "a"})
    EXPECT_EQ(model->word(model->index(word)), word);
  EXPECT_EQ(model->word(0), "<unk>");
  EXPECT_EQ(model->word(7), "");
}

TEST(NgramModel, ModelsOfWordsAloneAreModelsToo) {
  const auto model = read_ngram_model(
      "\\data\\\nngram 1=3\n\\1-grams:\n-1 <s>\n-0.5 </s>\n-0.25 yes\n\\end\\\n", "lm.arpa");
  expect_near(word_scores(*model, {"yes", "no"}), {-0.25F, -100.0F, -0.5F});
}

TEST(NgramModel, EndingsThatPruningLeftOutGetTheScoreOfBackOff) {
  // SRILM prunes `cat sat`, though `the cat sat` stays.
  std::string text = changed_arpa("ngram 2=5", "ngram 2=4");
  const std::string line = "-0.5\tcat sat\n";
  text.erase(text.find(line), line.size());
  const auto model = read_ngram_model(text, "lm.arpa");
  expect_near(word_scores(*model, {"the", "cat", "sat"}), {-0.3F, -0.1F, -0.2F, -0.7F});
  // backoff(a cat) = 0 + backoff(cat) + sat
  expect_near(word_scores(*model, {"a", "cat", "sat"}), {-2.0F, -1.2F, -1.6F, -0.7F});
}

/// Scores of random texts, beside the definition.
void expect_scores(const NgramModel& model, const RandomNgrams& random, int order) {
  RandomStream stream(17);
  for (int text = 0; text < 50; ++text) {
    std::vector<int> words = {0};
    NgramState state = model.begin_history();
    for (int i = 0; i < 12; ++i) {
      words.push_back(2 +
                      static_cast<int>(stream.below(static_cast<uint64_t>(random.num_words) - 2)));
      if (words.size() > static_cast<size_t>(order)) words.erase(words.begin());
      NgramState next;
      const float found = model.score(state, model.index(RandomNgrams::name(words.back())), next);
      ASSERT_NEAR(double{found}, random.score(words), 1e-5) << order << " " << text << " " << i;
      state = next;
    }
  }
}

TEST(NgramModel, EqualsTheDefinitionOnRandomModels) {
  for (const int order : {2, 3, 5}) {
    const RandomNgrams random(static_cast<uint64_t>(order), 9, order, 0.2);
    expect_scores(*read_ngram_model(random.arpa(), "lm.arpa"), random, order);
  }
}

TEST(NgramModel, EveryKindOfTrieEqualsTheDefinition) {
  for (const int order : {2, 3, 4}) {
    const RandomNgrams random(static_cast<uint64_t>(order), 12, order, 0);
    for (const uint32_t number_bits : {0, 9}) {
      for (const uint32_t array_bits : {0, 3, 22}) {
        const std::string bytes = TrieBytes(random, number_bits, array_bits).bytes();
        const auto model = read_ngram_model(bytes, "lm.bin");
        expect_scores(*model, random, order);
        EXPECT_EQ(model->num_words(), 13U);
        for (int word = 0; word < 12; ++word) {
          const std::string name = RandomNgrams::name(word);
          EXPECT_EQ(model->word(model->index(name)), name);
        }
        EXPECT_EQ(model->index("unheard"), 0U);
        EXPECT_EQ(model->unigram(0), -100.0F);
        for (size_t size = 200; size < bytes.size(); size += 97) {
          testing::failure(ExitCode::kBadData,
                           [&] { read_ngram_model(bytes.substr(0, size), "lm.bin"); });
        }
      }
    }
  }
}

TEST(NgramModel, BadTextsAreRefusedWithTheirLine) {
  const auto has = [](const std::string& text, const std::string& part) {
    const std::string message = arpa_failure(text);
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  has("no model", "no line \\data\\");
  has(changed_arpa("ngram 2=5", "ngram 2=6"), "5 2-grams, and \\data\\ promises 6");
  has(changed_arpa("ngram 2=5", "ngram 2=4"), "lm.arpa:21: more 2-grams than the 4");
  has(changed_arpa("ngram 2=5", "ngram 3=5"), "expected the count of order 2");
  has(changed_arpa("-0.6\tthe cat\t-0.15", "0.6\tthe cat\t-0.15"),
      "lm.arpa:18: the probability is above 1");
  has(changed_arpa("-0.6\tthe cat", "x\tthe cat"), "the probability x is no number");
  has(changed_arpa("-0.6\tthe cat", "nan\tthe cat"), "is no number");
  has(changed_arpa("cat\t-0.15", "cat\tlow"), "the back-off low is no number");
  has(changed_arpa("-0.5\tcat sat", "-0.5\tcat"), "expected 2 words, found 1");
  has(changed_arpa("-0.5\tcat sat", "-0.5\tcat sat -1 -1"), "more than 2 words and a back-off");
  has(changed_arpa("-0.5\tcat sat", "-0.5\tdog sat"), "which is no unigram");
  has(changed_arpa("-0.5\tcat sat", "-0.5\tthe cat"), "stands there twice");
  has(changed_arpa("-1.2\tcat", "-1.2\tthe"), "stands there twice");
  has(changed_arpa("-0.2\tthe cat sat", "-0.2\ta cat sat"), "back-off leads nowhere");
  has(changed_arpa("\\end\\\n", ""), "ends without \\end\\");
  has(changed_arpa("\\3-grams:", "\\4-grams:"), "expected \\3-grams:");
  has(kSmallArpa.substr(0, kSmallArpa.find("ngram 2")), "ends in its counts");
}

TEST(NgramModel, FilesOfKenlmAreReadAndDamagedOnesRefused) {
  const auto lines = arpa_lines(kSmallArpa);
  const std::string whole = ProbingFile(*lines, "lm.arpa").bytes();
  ASSERT_TRUE(is_kenlm(whole));
  expect_near(word_scores(*read_ngram_model(whole, "lm.bin"), {"the", "cat", "sat"}),
              {-0.3F, -0.1F, -0.2F, -0.7F});
  const auto refused = [](const std::string& bytes) {
    return testing::failure(ExitCode::kBadData, [&] { read_ngram_model(bytes, "lm.bin"); })
        .message();
  };
  for (size_t size = 50; size < whole.size(); size += 7)
    EXPECT_NE(refused(whole.substr(0, size)).find("lm.bin"), std::string::npos) << size;
  std::string other = whole;
  other[whole.find("version 5") + 8] = '4';
  EXPECT_NE(refused(other).find("another version"), std::string::npos);
  EXPECT_NE(
      refused("mmap lm http://kheafield.com/code incomplete\n").find("not written to its end"),
      std::string::npos);
}

TEST(NgramModel, TextIsReadOnceAndItsFormStaysInTheCache) {
  const TempDir folder;
  const std::filesystem::path path = folder.write("lm.arpa", kSmallArpa);
  const auto forms = [&] {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder / "cache/ngrams")) {
      if (entry.path().extension() == ".kenlm") found.push_back(entry.path());
    }
    return found;
  };
  expect_near(word_scores(*open_ngram_model(path, folder / "cache"), {"the"}), {-0.3F, -1.65F});
  ASSERT_EQ(forms().size(), 1U);
  const auto made = std::filesystem::last_write_time(forms()[0]);
  expect_near(word_scores(*open_ngram_model(path, folder / "cache"), {"the"}), {-0.3F, -1.65F});
  EXPECT_EQ(std::filesystem::last_write_time(forms()[0]), made);

  folder.write("lm.arpa", changed_arpa("-0.3\t<s> the", "-0.35\t<s> the"));
  expect_near(word_scores(*open_ngram_model(path, folder / "cache"), {"the"}), {-0.35F, -1.65F});
  EXPECT_EQ(forms().size(), 1U) << "that of the older text is gone";

  folder.write("cache/ngrams/" + forms()[0].filename().string(), "damaged");
  expect_near(word_scores(*open_ngram_model(path, folder / "cache"), {"the"}), {-0.35F, -1.65F});
}

TEST(NgramModel, TextMayBeCompressed) {
  const TempDir folder;
  const std::string path = (folder / "lm.arpa.gz").string();
  gzFile file = gzopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  gzwrite(file, kSmallArpa.data(), static_cast<unsigned>(kSmallArpa.size()));
  gzclose(file);
  expect_near(word_scores(*open_ngram_model(path, folder / "cache"), {"the", "cat"}),
              {-0.3F, -0.1F, -1.45F});
  const std::string whole = read_file(path);
  folder.write("cut.gz", whole.substr(0, whole.size() / 2));
  testing::failure(ExitCode::kBadData,
                   [&] { open_ngram_model(folder / "cut.gz", folder / "cache"); });
}

TEST(NgramModel, MissingAndEmptyFilesAreToldApart) {
  const TempDir folder;
  testing::failure(ExitCode::kUsage, [&] { open_ngram_model(folder / "none"); });
  testing::failure(ExitCode::kBadData, [&] { open_ngram_model(folder.write("empty", "")); });
}

}  // namespace
}  // namespace stretto::text
