#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/text_lines.h"
#include "tests/cli/program.h"

namespace stretto::cli {
namespace {

using stretto::testing::has;
using stretto::testing::Program;

TEST(TokenizerCommand, TrainsEncodesAndDecodes) {
  const Program program;
  std::string text;
  for (int i = 0; i < 200; ++i) {
    text += "the red house number " + std::to_string(i) + " stands beside the old tree\n";
  }
  program.folder.write("text", text);
  const auto trained =
      program.run({"tokenizer", "train", "--vocab-size", "80", "--output", "my.model", "text"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_TRUE(has(trained.out, "my.model: 80 pieces from 200 lines")) << trained.out;
  const std::string line = "the old house stands\n";
  const auto pieces = program.run({"tokenizer", "encode", "my.model"}, line);
  EXPECT_EQ(program.run({"tokenizer", "decode", "my.model"}, pieces.out).out, line);
  const auto ids = program.run({"tokenizer", "encode", "--ids", "my.model"}, line);
  EXPECT_EQ(ids.out.find_first_not_of("0123456789 \n"), std::string::npos) << ids.out;
  EXPECT_EQ(program.run({"tokenizer", "decode", "--ids", "my.model"}, ids.out).out, line);
  const auto bad = program.run({"tokenizer", "decode", "--ids", "my.model"}, "5 9999\n");
  EXPECT_EQ(bad.code, 65);
  EXPECT_TRUE(has(bad.err, "stdin:1: `9999` is not an id below 80")) << bad.err;
}

TEST(TokenizerCommand, ReadsFilesOfPretrainedModels) {
  const Program program;
  program.folder.write("vocab.txt", "[UNK]\n[CLS]\n[SEP]\nthe\nhou\n##se\n");
  const auto encoded = [&](const std::vector<std::string>& options) {
    std::vector<std::string> words{"tokenizer", "encode", "vocab.txt"};
    words.insert(words.end(), options.begin(), options.end());
    const auto outcome = program.run(words, "The  house\n");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  };
  EXPECT_EQ(encoded({}), "the hou ##se\n");
  EXPECT_EQ(encoded({"--ids"}), "3 4 5\n");
  EXPECT_EQ(encoded({"--offsets"}), "0:3 5:8 8:10\n");
  EXPECT_EQ(encoded({"--ids", "--offsets"}), "3:0:3 4:5:8 5:8:10\n");
  EXPECT_EQ(encoded({"--specials"}), "[CLS] the hou ##se [SEP]\n");
  EXPECT_EQ(encoded({"--specials", "--offsets"}), "0:0 0:3 5:8 8:10 0:0\n");
  program.folder.write("vocab.json", R"({"a": 0, "b": 1, "ab": 2})");
  program.folder.write("my.bpe", "#version: 0.2\na b\n");
  EXPECT_EQ(program.run({"tokenizer", "encode", "vocab.json", "--merges", "my.bpe"}, "aab\n").out,
            "a ab\n");
  const auto alone = program.run({"tokenizer", "encode", "vocab.json"}, "a\n");
  EXPECT_EQ(alone.code, 2) << "there is no merges.txt beside it";
}

TEST(TokenizerCommand, TrainsTokenizersOfBertAndGpt2) {
  const Program program;
  std::string text;
  for (int i = 0; i < 200; ++i) text += "The red house " + std::to_string(i) + " stands\n";
  program.folder.write("text", text);
  const auto train = [&](const std::vector<std::string>& options) {
    std::vector<std::string> words{"tokenizer", "train", "--output", "my.json", "text"};
    words.insert(words.end(), options.begin(), options.end());
    const auto outcome = program.run(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const auto ids = program.run({"tokenizer", "encode", "--ids", "my.json"}, "The house\n");
    return program.run({"tokenizer", "decode", "--ids", "my.json"}, ids.out).out;
  };
  EXPECT_EQ(train({"--type", "wordpiece", "--vocab-size", "90"}), "the house\n");
  EXPECT_EQ(train({"--type", "wordpiece", "--vocab-size", "90", "--cased"}), "The house\n");
  EXPECT_EQ(train({"--type", "byte_bpe", "--vocab-size", "300"}), "The house\n");
}

// Both sides, white space between the lines, and more lines than are drawn.
TEST(TokenizerCommand, TrainsTheModelThatARunTrainsOnThisText) {
  const Program program;
  std::string src, tgt;
  for (int i = 0; i < 300; ++i) {
    src += "the red house number " + std::to_string(i * 7919) + " stands here\n" +
           (i % 3 == 0   ? "\n"
            : i % 3 == 1 ? "  \t\n"
                         : "");
    tgt +=
        "la maison rouge " + std::to_string(i * 104729) + " est ici\n" + (i % 5 == 0 ? " \n" : "");
  }
  const std::string src_path = program.folder.write("a.src", src);
  const std::string tgt_path = program.folder.write("a.tgt", tgt);
  const auto command = [&](std::vector<std::string> files) {
    std::vector<std::string> words{"tokenizer",   "train",        "--vocab-size", "80",
                                   "--max-lines", "100",          "--seed",       "5",
                                   "--output",    "trained.model"};
    words.insert(words.end(), files.begin(), files.end());
    const auto outcome = program.run(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return stretto::testing::text_of(program.folder.path() / "trained.model");
  };
  const auto of_run = [&](bool joint, const std::string& asset) {
    const auto lines_src = data::open_lines({src_path}), lines_tgt = data::open_lines({tgt_path});
    return text::make_tokenizers({.joint = joint, .vocab_size = 80, .max_training_lines = 100},
                                 /*seed=*/5, lines_src.get(), lines_tgt.get())
        .assets.at(asset);
  };
  EXPECT_EQ(command({"a.src", "a.tgt"}), of_run(true, "tokenizer.model"));
  EXPECT_EQ(command({"a.src"}), of_run(false, "src.model"));
  EXPECT_NE(command({"a.tgt", "a.src"}), of_run(true, "tokenizer.model")) << "sides are in order";
}

}  // namespace
}  // namespace stretto::cli
