#include "data/documents/tokenizer_lines.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/base/temp_dir.h"

namespace stretto::data {
namespace {

using Lines = std::vector<std::string>;

class TokenizerLines : public ::testing::Test {
 protected:
  Lines lines_of(const std::vector<std::string>& texts, DocumentEnd end, DocumentText kind) {
    DocumentInput input{
        .paths = {}, .end = end, .key = "data.train", .text = kind, .json_key = "text"};
    for (size_t i = 0; i < texts.size(); ++i) {
      input.paths.push_back(folder_.write(std::to_string(i) + ".txt", texts[i]));
    }
    const auto source = open_tokenizer_lines(input);
    Lines lines;
    for (std::string line; source->next(line);) lines.push_back(line);
    return lines;
  }
  testing::TempDir folder_;
};

TEST_F(TokenizerLines, OfExactTextHaveTheirEnds) {
  EXPECT_EQ(lines_of({"a\n\nb\r\nc", "d\n"}, DocumentEnd::kFile, DocumentText::kExact),
            (Lines{"a\n", "\n", "b\r\n", "c", "d\n"}));
}

TEST_F(TokenizerLines, OfLinesAreWithoutEnds) {
  EXPECT_EQ(lines_of({"a\n\nb\r\n", "c"}, DocumentEnd::kEachLine, DocumentText::kJoinedLines),
            (Lines{"a", "b", "c"}));
}

TEST_F(TokenizerLines, OfJsonAreThoseOfItsTexts) {
  EXPECT_EQ(lines_of({"{\"text\": \"a\\nb\"}\n{\"text\": \"c\"}\n"}, DocumentEnd::kJsonLine,
                     DocumentText::kExact),
            (Lines{"a\n", "b", "c"}));
}

}  // namespace
}  // namespace stretto::data
