// What the reversal task's text promises, and the program that writes it.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/text.h"
#include "examples/reversal/sequences.h"
#include "tests/cli/program.h"

namespace stretto::reversal {
namespace {

using stretto::testing::Program;
using stretto::testing::ProgramResult;
using stretto::testing::shell_quoted;
using stretto::testing::text_of;

const Corpus& shipped() {
  static const Corpus corpus = generate(1);
  return corpus;
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::string text_of_side(const std::vector<Pair>& pairs, std::string Pair::*side) {
  std::string text;
  for (const Pair& pair : pairs) text += pair.*side + '\n';
  return text;
}

TEST(Reversal, HasTheSizesThatItPromises) {
  EXPECT_EQ(shipped().train.size(), 10000u);
  EXPECT_EQ(shipped().valid.size(), 1000u);
  EXPECT_EQ(shipped().test.size(), 2000u);
}

TEST(Reversal, TargetsAreTheSymbolsOfTheSourceInReverseOrder) {
  const std::string vocabulary_lines = vocabulary();
  EXPECT_EQ(vocabulary_lines, "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n");
  for (const auto* part : {&shipped().train, &shipped().valid, &shipped().test}) {
    for (const Pair& pair : *part) {
      auto symbols = words_of(pair.source);
      for (const auto& symbol : symbols) {
        ASSERT_NE(vocabulary_lines.find(symbol + "\n"), std::string::npos) << pair.source;
      }
      std::reverse(symbols.begin(), symbols.end());
      ASSERT_EQ(words_of(pair.target), symbols) << pair.source;
    }
  }
}

TEST(Reversal, TheHalvesOfASourceAreItsSymbolsInOrder) {
  EXPECT_EQ(halves_of({"a b c d e", ""}).first, "a b");
  EXPECT_EQ(halves_of({"a b c d e", ""}).second, "c d e");
  EXPECT_EQ(halves_of({"a b c d", ""}).second, "c d");
  for (const Pair& pair : shipped().valid) {
    const Halves halves = halves_of(pair);
    ASSERT_EQ(halves.first + " " + halves.second, pair.source);
  }
}

TEST(Reversal, LengthsAndSymbolsAreUniform) {
  std::vector<size_t> lengths(kLongest + 1), symbols(10);
  for (const Pair& pair : shipped().train) {
    const auto words = words_of(pair.source);
    ASSERT_GE(words.size(), kShortest);
    ASSERT_LE(words.size(), kLongest);
    ++lengths[words.size()];
    for (const auto& word : words) ++symbols.at(static_cast<size_t>(word[0] - 'a'));
  }
  // 10,000 sentences of 46 lengths: 217 of each, with a standard deviation of 15.
  for (size_t length = kShortest; length <= kLongest; ++length) {
    EXPECT_NEAR(static_cast<double>(lengths[length]), 217, 75) << length;
  }
  // 275,000 symbols: 27,500 of each, with a standard deviation of 157.
  for (const size_t count : symbols) EXPECT_NEAR(static_cast<double>(count), 27500, 1500);
}

TEST(Reversal, NoHeldOutSentenceIsRepeatedOrInTraining) {
  // So many that without a check about a dozen of the shortest would be in two parts.
  const Corpus corpus = generate(3, {.train = 40000, .valid = 20000, .test = 20000});
  std::set<std::string> held_out;
  for (const auto* part : {&corpus.valid, &corpus.test}) {
    for (const Pair& pair : *part) EXPECT_TRUE(held_out.insert(pair.source).second) << pair.source;
  }
  for (const Pair& pair : corpus.train) EXPECT_FALSE(held_out.contains(pair.source)) << pair.source;
}

TEST(Reversal, SameSeedSameCorpusAndOtherSeedAnother) {
  const CorpusSizes small{.train = 50, .valid = 5, .test = 5};
  const auto sources = [&](uint64_t seed) {
    return text_of_side(generate(seed, small).train, &Pair::source);
  };
  EXPECT_EQ(sources(7), sources(7));
  EXPECT_NE(sources(7), sources(8));
}

// Stored losses belong to this text: who changes it stores them anew.
TEST(Reversal, TheShippedTextIsThatOfTheStoredCurves) {
  const auto hash = [](const std::vector<Pair>& pairs) {
    return stretto::hex64(stretto::xxh3_64(text_of_side(pairs, &Pair::source)));
  };
  EXPECT_EQ(hash(shipped().train), "be0f8cab1d63d697");
  EXPECT_EQ(hash(shipped().valid), "aac482fb3be1535a");
  EXPECT_EQ(hash(shipped().test), "3300a31a8f3340f0");
}

ProgramResult reversal(const Program& in, const std::string& arguments) {
  return in.shell(shell_quoted(std::string(STRETTO_BINARY_DIR) + "/reversal") + " " + arguments);
}

TEST(ReversalProgram, WritesEveryPartAndTheVocabulary) {
  const Program in;
  const ProgramResult written = reversal(in, "new/folder");
  EXPECT_EQ(written.code, 0) << written.err;
  EXPECT_NE(written.out.find("new/folder/test.{src,src1,src2,tgt}: 2000 pairs\n"),
            std::string::npos);
  const auto folder = in.folder.path() / "new" / "folder";
  EXPECT_EQ(text_of(folder / "vocab.txt"), vocabulary());
  const auto check = [&](const std::string& name, const std::vector<Pair>& pairs) {
    EXPECT_EQ(text_of(folder / (name + ".src")), text_of_side(pairs, &Pair::source));
    EXPECT_EQ(text_of(folder / (name + ".tgt")), text_of_side(pairs, &Pair::target));
    std::string first, second;
    for (const Pair& pair : pairs) {
      first += halves_of(pair).first + '\n';
      second += halves_of(pair).second + '\n';
    }
    EXPECT_EQ(text_of(folder / (name + ".src1")), first);
    EXPECT_EQ(text_of(folder / (name + ".src2")), second);
  };
  check("train", shipped().train);
  check("valid", shipped().valid);
  check("test", shipped().test);
  const auto files = std::filesystem::directory_iterator(folder);
  EXPECT_EQ(std::distance(begin(files), end(files)), 13) << "a temporary file was left";
}

TEST(ReversalProgram, SaysWhatIsWrongWithItsArguments) {
  const Program in;
  for (const auto& [arguments, words] : std::vector<std::pair<std::string, std::string>>{
           {"", "FOLDER is missing"},
           {"''", "FOLDER is empty"},
           {"a b", "SEED must be a whole number from 0 to 18446744073709551615, got \"b\""},
           {"a 1x", "got \"1x\""},
           {"a 18446744073709551616", "got \"18446744073709551616\""},
           {"a 1 2", "got 3 arguments"},
           {"--seed", "no option \"--seed\""}}) {
    const ProgramResult refused = reversal(in, arguments);
    EXPECT_EQ(refused.code, 2) << arguments;
    EXPECT_NE(refused.err.find(words), std::string::npos) << refused.err;
    EXPECT_TRUE(refused.err.starts_with("error: reversal: ")) << refused.err;
    EXPECT_NE(refused.err.find("\n  "), std::string::npos) << "no remedy: " << refused.err;
  }
  EXPECT_FALSE(std::filesystem::exists(in.folder.path() / "a"));
}

TEST(ReversalProgram, HelpIsNoError) {
  const Program in;
  const ProgramResult help = reversal(in, "a --help");
  EXPECT_EQ(help.code, 0);
  EXPECT_TRUE(help.out.starts_with("usage: reversal FOLDER [SEED]\n")) << help.out;
  EXPECT_EQ(help.err, "");
}

TEST(ReversalProgram, APlaceThatCannotBeWrittenIsNamedWithItsReason) {
  const Program in;
  in.folder.write("file", "x");
  const ProgramResult refused = reversal(in, "file");
  EXPECT_EQ(refused.code, 74);
  EXPECT_NE(refused.err.find("cannot create file: File exists"), std::string::npos) << refused.err;
}

}  // namespace
}  // namespace stretto::reversal
