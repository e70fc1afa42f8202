#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "tests/base/failure.h"
#include "tests/text/special_ids.h"
#include "text/tokenizer.h"

namespace stretto::text {
namespace {

using stretto::testing::kUnk;

class Lines final : public LineSource {
 public:
  explicit Lines(std::vector<std::string> lines) : lines_(std::move(lines)) {}
  bool next(std::string& line) override {
    if (at_ == lines_.size()) return false;
    line = lines_[at_++];
    return true;
  }

 private:
  std::vector<std::string> lines_;
  size_t at_ = 0;
};

std::vector<std::string> english() {
  std::vector<std::string> lines;
  for (int i = 0; i < 400; ++i) lines.push_back("we count " + std::to_string(i) + " small birds");
  return lines;
}
std::vector<std::string> french() {
  std::vector<std::string> lines;
  for (int i = 0; i < 400; ++i) lines.push_back("nous comptons " + std::to_string(i) + " oiseaux");
  return lines;
}

TokenizerPair trained(const TokenizerOptions& options, uint64_t seed = 1) {
  Lines src(english()), tgt(french());
  return make_tokenizers(options, seed, &src, &tgt);
}

class MakeTokenizers : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("stretto_tokenizers_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return (folder_ / name).string();
  }
  std::filesystem::path folder_;
};

TEST_F(MakeTokenizers, TrainsOneModelOnBothSides) {
  const TokenizerPair pair = trained({.vocab_size = 90});
  EXPECT_TRUE(pair.joint);
  EXPECT_EQ(pair.src, pair.tgt);
  EXPECT_EQ(pair.src->size(), 90);
  ASSERT_TRUE(pair.assets.contains("tokenizer.model"));
  std::vector<int64_t> ids;
  pair.src->encode("nous comptons small birds", ids);
  for (const int64_t id : ids) EXPECT_NE(id, kUnk);
}

TEST_F(MakeTokenizers, TrainsOneModelForEachSide) {
  const TokenizerPair pair = trained({.joint = false, .vocab_size = 60});
  EXPECT_FALSE(pair.joint);
  EXPECT_TRUE(pair.assets.contains("src.model"));
  EXPECT_TRUE(pair.assets.contains("tgt.model"));
  EXPECT_NE(pair.src->fingerprint(), pair.tgt->fingerprint());
}

// As if the other side had no line.
TEST_F(MakeTokenizers, TrainsTheOneTokenizerOfATextWithOneSide) {
  for (const bool joint : {true, false}) {
    Lines only(english());
    const TokenizerPair one =
        make_tokenizers({.joint = joint, .vocab_size = 60}, 1, &only, nullptr);
    EXPECT_TRUE(one.joint);
    EXPECT_EQ(one.src, one.tgt);
    Lines src(english()), nothing(std::vector<std::string>{});
    EXPECT_EQ(one.assets, make_tokenizers({.vocab_size = 60}, 1, &src, &nothing).assets);
  }
  Lines tgt(french());
  testing::failure(ExitCode::kUsage, [&] { make_tokenizers({}, 1, nullptr, &tgt); });
}

TEST_F(MakeTokenizers, ARunFolderGivesTheSameTokenizersBack) {
  for (const bool joint : {true, false}) {
    const TokenizerOptions options{.joint = joint, .vocab_size = 60};
    const TokenizerPair pair = trained(options), again = load_tokenizers(options, pair.assets);
    EXPECT_EQ(pair.src->fingerprint(), again.src->fingerprint());
    EXPECT_EQ(pair.tgt->fingerprint(), again.tgt->fingerprint());
    EXPECT_EQ(pair.joint, again.joint);
  }
}

TEST_F(MakeTokenizers, OtherFilesOfARunFolderAreNoTokenizers) {
  const TokenizerOptions options{.joint = false, .vocab_size = 60};
  const TokenizerPair pair = trained(options);
  auto assets = pair.assets;
  assets["names.json"] = "[]";
  EXPECT_EQ(load_tokenizers(options, assets).assets, pair.assets);
  for (const auto& [name, bytes] : pair.assets) EXPECT_TRUE(is_tokenizer_asset(name)) << name;
  for (const char* name : {"tokenizer.json", "tokenizer.chars", "tgt.json", "src.vocab",
                           "vocab.json", "begin.piece"}) {
    EXPECT_TRUE(is_tokenizer_asset(name)) << name;
  }
  EXPECT_FALSE(is_tokenizer_asset("names.json"));
}

TEST_F(MakeTokenizers, TheSeedDrawsTheTrainingLines) {
  const TokenizerOptions options{.vocab_size = 60, .max_training_lines = 150};
  EXPECT_EQ(trained(options, 1).assets, trained(options, 1).assets);
  EXPECT_NE(trained(options, 1).assets, trained(options, 2).assets);
}

TEST_F(MakeTokenizers, LoadsModels) {
  const std::string bytes = trained({.vocab_size = 60}).assets.at("tokenizer.model");
  const std::string path = write("m.model", bytes);
  EXPECT_TRUE(make_tokenizers({.model = path}, 1, nullptr, nullptr).joint);
  const auto two = make_tokenizers({.src_model = path, .tgt_model = path}, 1, nullptr, nullptr);
  EXPECT_TRUE(two.joint);  // the same model twice
}

// 40 lines, of which each of 4,000 seeds draws 8: each line is drawn 800 times, give or take 25.
TEST(SampleLines, EveryLineHasTheSameChance) {
  std::vector<std::string> all;
  for (int i = 0; i < 40; ++i) all.push_back(std::to_string(i));
  std::vector<int> times(all.size());
  for (uint64_t seed = 1; seed <= 4000; ++seed) {
    Lines source(all);
    std::vector<std::string> drawn{"of an earlier source"};
    sample_lines(source, 1, {.max_lines = 8, .seed = seed}, drawn);
    ASSERT_EQ(drawn.size(), 9u);
    EXPECT_EQ(drawn.front(), "of an earlier source");
    for (size_t i = 1; i < drawn.size(); ++i) ++times[std::stoul(drawn[i])];
  }
  for (size_t line = 0; line < times.size(); ++line) EXPECT_NEAR(times[line], 800, 125) << line;
}

TEST_F(MakeTokenizers, LoadsVocabularies) {
  const std::string src = write("dict.en.txt", "a 3\nb 2\n"), tgt = write("dict.fr.txt", "c 3\n");
  const TokenizerOptions both{.type = "vocab", .src_vocab = src, .tgt_vocab = tgt};
  const TokenizerPair pair = make_tokenizers(both, 1, nullptr, nullptr);
  EXPECT_FALSE(pair.joint);
  EXPECT_EQ(pair.src->size(), 6);
  EXPECT_EQ(pair.tgt->size(), 5);
  EXPECT_EQ(load_tokenizers(both, pair.assets).tgt->size(), 5);

  const TokenizerOptions one{.type = "vocab", .src_vocab = src};
  const TokenizerPair shared = make_tokenizers(one, 1, nullptr, nullptr);
  EXPECT_TRUE(shared.joint);
  EXPECT_TRUE(load_tokenizers(one, shared.assets).joint);
}

TEST_F(MakeTokenizers, TheFilesOfARunDecideTheirKindAndNotTheConfiguration) {
  const std::string src = write("dict.en.txt", "a 3\nb 2\n");
  const TokenizerOptions vocabulary{.type = "vocab", .src_vocab = src};
  const TokenizerPair words = make_tokenizers(vocabulary, 1, nullptr, nullptr);
  EXPECT_EQ(load_tokenizers({}, words.assets).src->size(), 6);
  const TokenizerPair pieces = trained({.vocab_size = 60});
  EXPECT_EQ(load_tokenizers(vocabulary, pieces.assets).src->size(), 60);
}

TEST_F(MakeTokenizers, AnyFileThatTheConfigurationNamesCountsAsNamed) {
  EXPECT_FALSE(names_tokenizer({}));
  EXPECT_FALSE(names_tokenizer({.joint = false, .vocab_size = 60}));
  EXPECT_FALSE(names_tokenizer({.type = "vocab"}));
  EXPECT_TRUE(names_tokenizer({.type = "vocab", .src_vocab = "a"}));
  EXPECT_TRUE(names_tokenizer({.model = "a"}));
  EXPECT_TRUE(names_tokenizer({.tgt_model = "a"}));
}

TEST_F(MakeTokenizers, SaysWhatIsMissing) {
  const auto code = [](const TokenizerOptions& options) {
    try {
      make_tokenizers(options, 1, nullptr, nullptr);
    } catch (const Error& error) {
      EXPECT_FALSE(error.advice().empty()) << error.what();
      return error.code();
    }
    return ExitCode::kOk;
  };
  EXPECT_EQ(code({}), ExitCode::kUsage);
  EXPECT_EQ(code({.type = "vocab"}), ExitCode::kUsage);
  EXPECT_EQ(code({.model = "/no/such/file.model"}), ExitCode::kUsage);
  EXPECT_EQ(code({.src_model = write("a.model", "x")}), ExitCode::kUsage);
  EXPECT_EQ(code({.model = write("b.model", "not a model at all")}), ExitCode::kBadData);
  testing::failure(ExitCode::kUsage, [&] { load_tokenizers({}, {}); });
}

TEST_F(MakeTokenizers, TrainsTheOtherKindsToo) {
  for (const char* type : {"wordpiece", "byte_bpe"}) {
    const TokenizerPair joint = trained({.type = type, .vocab_size = 300});
    EXPECT_TRUE(joint.joint);
    ASSERT_TRUE(joint.assets.contains("tokenizer.json")) << type;
    std::vector<int64_t> ids;
    joint.src->encode("small birds", ids);
    EXPECT_EQ(joint.src->decode(ids), "small birds");
    const TokenizerPair again = load_tokenizers({}, joint.assets);
    EXPECT_EQ(again.src->fingerprint(), joint.src->fingerprint());
    const TokenizerPair apart = trained({.type = type, .joint = false, .vocab_size = 300});
    EXPECT_TRUE(apart.assets.contains("src.json"));
    EXPECT_FALSE(load_tokenizers({}, apart.assets).joint);
  }
}

TEST_F(MakeTokenizers, TakesCharactersAndWordsFromTheText) {
  for (const auto& [type, asset, size] :
       {std::tuple("char", "tokenizer.chars", 4 + 26), std::tuple("word", "src.vocab", 4 + 404)}) {
    Lines only(english());
    const TokenizerOptions options{.type = type, .vocab_size = 1000, .subwords = "none"};
    const TokenizerPair made = make_tokenizers(options, 1, &only, nullptr);
    EXPECT_EQ(made.src, made.tgt);
    ASSERT_TRUE(made.assets.contains(asset)) << type;
    EXPECT_TRUE(is_tokenizer_asset(asset));
    EXPECT_EQ(made.src->size(), size) << type;
    std::vector<int64_t> ids;
    made.src->encode("small birds", ids);
    EXPECT_EQ(made.src->decode(ids), "small birds");
    EXPECT_EQ(load_tokenizers(options, made.assets).src->fingerprint(), made.src->fingerprint());

    auto named = options;
    named.model = write("named", made.assets.at(asset));
    EXPECT_TRUE(names_tokenizer(named));
    EXPECT_EQ(make_tokenizers(named, 1, nullptr, nullptr).assets, made.assets) << type;

    Lines again(english());
    auto few = options;
    few.vocab_size = 16;
    EXPECT_EQ(make_tokenizers(few, 1, &again, nullptr).src->size(), 16) << type;
  }
}

TEST_F(MakeTokenizers, ReadsFilesOfPretrainedModels) {
  const std::string vocab = write("vocab.txt", "[UNK]\n[CLS]\n[SEP]\nthe\nThe\n");
  const auto cased = make_tokenizers({.type = "wordpiece", .model = vocab}, 1, nullptr, nullptr);
  std::vector<int64_t> ids;
  cased.src->encode("The the", ids);
  EXPECT_EQ(ids, (std::vector<int64_t>{4, 3})) << "the vocabulary shows that case counts";
  ASSERT_TRUE(cased.assets.contains("tokenizer.json"));
  const auto lower = make_tokenizers({.type = "wordpiece", .lowercase = "yes", .model = vocab}, 1,
                                     nullptr, nullptr);
  EXPECT_NE(lower.src->fingerprint(), cased.src->fingerprint());
  const std::string json = write("t.json", cased.assets.at("tokenizer.json"));
  const auto same = make_tokenizers({.model = json}, 1, nullptr, nullptr);
  EXPECT_EQ(same.src->fingerprint(), cased.src->fingerprint()) << "its content tells what it is";
}

TEST_F(MakeTokenizers, AVocabJsonHasItsMergesBesideIt) {
  const std::string vocab = write("vocab.json", R"({"a": 0, "b": 1, "ab": 2})");
  write("merges.txt", "a b\n");
  const std::string none = write("none.txt", "");
  std::vector<int64_t> ids;
  make_tokenizers({.type = "byte_bpe", .model = vocab}, 1, nullptr, nullptr).src->encode("ab", ids);
  make_tokenizers({.type = "byte_bpe", .model = vocab, .merges = none}, 1, nullptr, nullptr)
      .src->encode("ab", ids);
  EXPECT_EQ(ids, (std::vector<int64_t>{2, 0, 1}));
}

}  // namespace
}  // namespace stretto::text
