#include "data/documents/document_sizes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/base/temp_dir.h"

namespace stretto::data {
namespace {

using Words = std::vector<int64_t>;

class DocumentSizes : public ::testing::Test {
 protected:
  DocumentInput input(const std::string& text, DocumentEnd end, DocumentText kind) {
    return {.paths = {folder_.write("a.txt", text)}, .end = end, .key = "data.valid", .text = kind};
  }
  testing::TempDir folder_;
};

TEST_F(DocumentSizes, OfExactTextAreAllBytes) {
  const std::string text = "the é \n\ncat  sat\r\n";
  const auto sizes = sizes_of_documents(input(text, DocumentEnd::kFile, DocumentText::kExact));
  EXPECT_EQ(sizes.bytes, std::ssize(text));
  EXPECT_EQ(sizes.words, 4);
  EXPECT_EQ(sizes.words_of_documents, Words{4});
}

TEST_F(DocumentSizes, OfLinesAreThoseWithoutTheirEnds) {
  const std::string text = "a b\n\n  \nc\r\nd e f";
  const auto each =
      sizes_of_documents(input(text, DocumentEnd::kEachLine, DocumentText::kJoinedLines));
  EXPECT_EQ(each.bytes, 3 + 0 + 2 + 1 + 5);
  EXPECT_EQ(each.words, 6);
  EXPECT_EQ(each.words_of_documents, (Words{2, 0, 0, 1, 3}));
  const auto some = sizes_of_documents(input(text, DocumentEnd::kLine, DocumentText::kJoinedLines));
  EXPECT_EQ(some.bytes, 3 + 1 + 5);
  EXPECT_EQ(some.words_of_documents, (Words{2, 1, 3}));
}

}  // namespace
}  // namespace stretto::data
