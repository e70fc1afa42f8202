#include "data/documents/causal_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "data/documents/document_texts.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/data/documents/byte_tokenizer.h"

namespace stretto::data {
namespace {

using stretto::testing::failure;

/// What a byte-level tokenizer makes of a file, with `|` for separators.
std::string read_as(const CausalTextOptions& options, const std::string& file) {
  stretto::testing::TempDir folder;
  const auto tokenizer = stretto::testing::byte_tokenizer();
  auto input = input_of(options, {folder.write("a.txt", file)}, "data.train", 1);
  input.cache_dir = (folder / "cache").string();
  const auto documents = open_documents(input, *tokenizer);
  std::string text;
  for (int64_t i = 0; i < documents->size(); ++i) {
    std::vector<int64_t> ids;
    documents->append(documents->begin(i), documents->end(i), ids);
    text += tokenizer->decode(ids) + "|";
  }
  return text;
}

TEST(CausalText, IsReadAsItsFormatSays) {
  CausalTextOptions options;
  EXPECT_EQ(read_as(options, "a\n\nb\n"), "a\n\nb\n|");
  options.documents = "blank_line";
  EXPECT_EQ(read_as(options, "a\n\nb\n"), "a\n|b\n|");
  options.documents = "marker";
  options.marker = "---";
  EXPECT_EQ(read_as(options, "a\n---\n\nb\n"), "a\n|\nb\n|");
  options.format = "jsonl";
  options.key = "body";
  EXPECT_EQ(read_as(options, "{\"body\": \"a\\nb\"}\n{\"body\": \"c\"}\n"), "a\nb|c|");
}

TEST(CausalText, ABlankLineIsALineUnlessItIsLeftOut) {
  CausalTextOptions options;
  options.format = "lines";
  EXPECT_EQ(read_as(options, "a b\n\nc\n \n"), "a b||c| |");
  options.keep_blank_lines = false;
  EXPECT_EQ(read_as(options, "a b\n\nc\n \n"), "a b|c|");
}

TEST(CausalText, BlankLinesAloneAreNoText) {
  CausalTextOptions options;
  options.format = "lines";
  failure(ExitCode::kBadData, [&] { read_as(options, "\n\n"); });
}

TEST(CausalText, ATextOfWhichAllIsLeftOutSaysSo) {
  CausalTextOptions options;
  options.format = "lines";
  options.bad_samples = "skip";
  const auto message =
      failure(ExitCode::kBadData, [&] { read_as(options, std::string(1'000'001, 'a')); }).message();
  EXPECT_NE(message.find("data.bad_samples left out 1 bad sample"), std::string::npos) << message;
  options.bad_samples = "stop";
  EXPECT_EQ(failure(ExitCode::kBadData, [&] { read_as(options, "\n"); }).message().find("left out"),
            std::string::npos);
}

TEST(CausalText, EachReadingIsACacheOfItsOwn) {
  CausalTextOptions options;
  std::vector<std::string> keys;
  const auto add = [&] { keys.push_back(reading_key(input_of(options, {}, "", 1))); };
  add();
  options.documents = "blank_line";
  add();
  options.documents = "marker";
  add();
  options.format = "jsonl";
  add();
  options.key = "body";
  add();
  options.format = "lines";
  add();
  options.keep_blank_lines = false;
  add();
  for (size_t i = 0; i < keys.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_NE(keys[i], keys[j]) << i << " " << j;
  }
}

TEST(CausalText, LanesNeedTextForAStretchEach) {
  const auto message = [](int64_t tokens, const WantedLanes& wanted) {
    return failure(ExitCode::kBadData, [&] { require_lanes_fit("training text", tokens, wanted); })
        .message();
  };
  const WantedLanes wanted{
      .lanes = 20, .lanes_key = "data.lanes", .length = 70, .length_key = "data.bptt"};
  require_lanes_fit("training text", 1400, wanted);
  EXPECT_NE(message(1399, wanted).find("data.bptt = 70 goes back further"), std::string::npos);
  EXPECT_NE(message(39, wanted).find("data.lanes = 20 lanes need two each"), std::string::npos);
  EXPECT_NE(message(39, wanted).find("lower data.lanes to 19 or less"), std::string::npos);
  EXPECT_NE(message(3, wanted).find("lower data.lanes to 1, or"), std::string::npos);
  require_lanes_fit("validation text", 40, {.lanes = 20, .lanes_key = "eval.lanes"});
}

}  // namespace
}  // namespace stretto::data
