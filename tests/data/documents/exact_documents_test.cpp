// Documents of exact text, from files to ids and back.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.h"
#include "base/text.h"
#include "data/documents/document_texts.h"
#include "data/documents/documents.h"
#include "data/documents/documents_count.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/data/documents/byte_tokenizer.h"

namespace stretto::data {
namespace {

constexpr int64_t kEndOfText = 259;

class ExactDocumentsTest : public ::testing::Test {
 protected:
  DocumentInput input(const std::string& name, DocumentEnd end = DocumentEnd::kFile) const {
    return {.paths = {(folder_ / name).string()},
            .end = end,
            .cache_dir = (folder_ / "cache").string(),
            .threads = 3,
            .key = "data.train",
            .text = DocumentText::kExact};
  }
  std::string decoded(const Documents& documents, int64_t number) const {
    std::vector<int64_t> ids;
    documents.append(documents.begin(number), documents.end(number), ids);
    return tokenizer_->decode(ids);
  }

  testing::TempDir folder_;
  std::shared_ptr<const text::Tokenizer> tokenizer_ = testing::byte_tokenizer();
};

TEST_F(ExactDocumentsTest, IdsOfAByteLevelTokenizerSpellTheBytesOfTheFile) {
  RandomStream random(3);
  std::string text = "\xEF\xBB\xBF first \r\n\n\n\tthe  the\n";
  const std::vector<std::string> parts{"the ", "\n", " th", "\r\n", "é", "\xE4\xB8\xAD", "\t", "x"};
  while (text.size() < kMaxPieceBytes + 100'000) text += parts[random.below(parts.size())];
  folder_.write("a.txt", text);
  const auto documents = open_documents(input("a.txt"), *tokenizer_);
  ASSERT_EQ(documents->size(), 1);
  EXPECT_TRUE(decoded(*documents, 0) == text);
  EXPECT_EQ(documents->counts().lines, lines_in(text));
  EXPECT_EQ(documents->counts().repaired, 0);
}

TEST_F(ExactDocumentsTest, ADocumentIsTokenisedAsAWhole) {
  folder_.write("a.txt", "a\n\n");
  std::vector<int64_t> ids;
  open_documents(input("a.txt"), *tokenizer_)->append(0, 3, ids);
  EXPECT_EQ(ids, (std::vector<int64_t>{'a', 258, kEndOfText})) << "both line ends are one token";
}

TEST_F(ExactDocumentsTest, FilesAndMarkersAreDocumentsWithSeparators) {
  folder_.write("a.txt", "a\n\n<doc>\nb\n");
  folder_.write("b.txt", "c");
  auto both = input("a.txt", DocumentEnd::kMarker);
  both.marker = "<doc>";
  both.paths.push_back((folder_ / "b.txt").string());
  const auto documents = open_documents(both, *tokenizer_);
  ASSERT_EQ(documents->size(), 3);
  EXPECT_EQ(decoded(*documents, 0), "a\n\n");
  EXPECT_EQ(decoded(*documents, 1), "b\n");
  EXPECT_EQ(decoded(*documents, 2), "c");
  const auto counted = count_document_tokens(
      both, *tokenizer_, SequenceRows(*tokenizer_, Packing::kPacked, 32), [] { return true; });
  EXPECT_EQ(counted.sequences, 1);
}

TEST_F(ExactDocumentsTest, AreOtherCachesThanThoseOfJoinedLines) {
  folder_.write("a.txt", "a\n\nb\n");
  const auto key = [&](DocumentEnd end, DocumentText kind, const std::string& marker = "") {
    auto one = input("a.txt", end);
    one.text = kind;
    one.marker = marker;
    return open_documents(one, *tokenizer_)->key();
  };
  const std::vector<uint64_t> keys{
      key(DocumentEnd::kBlankLine, DocumentText::kJoinedLines),
      key(DocumentEnd::kLine, DocumentText::kJoinedLines),
      key(DocumentEnd::kBlankLine, DocumentText::kExact),
      key(DocumentEnd::kLine, DocumentText::kExact),
      key(DocumentEnd::kFile, DocumentText::kExact),
      key(DocumentEnd::kMarker, DocumentText::kExact),
      key(DocumentEnd::kMarker, DocumentText::kExact, "x"),
  };
  for (size_t i = 0; i < keys.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_NE(keys[i], keys[j]) << i << " " << j;
  }
  EXPECT_EQ(reading_key({.paths = {}}), " blank_line") << "caches of earlier versions are found";
  EXPECT_EQ(reading_key({.paths = {}, .end = DocumentEnd::kLine}), " line");
  EXPECT_THROW(key(DocumentEnd::kFile, DocumentText::kJoinedLines), std::invalid_argument);
}

TEST_F(ExactDocumentsTest, LinesThatAreNotUtf8AreCountedByTheirNumber) {
  folder_.write("a.txt", "a\nb\xFF\nc\n\xFE\n");
  const auto documents = open_documents(input("a.txt"), *tokenizer_);
  EXPECT_EQ(documents->counts().repaired, 2);
  EXPECT_EQ(decoded(*documents, 0), "a\nb\uFFFD\nc\n\uFFFD\n");
}

TEST(LinesOfATextThatAreNotUtf8, HaveTheirNumbers) {
  EXPECT_EQ(invalid_lines("a\nb", 5).count, 0);
  EXPECT_EQ(invalid_lines("\xFF", 5).first, 5);
  const auto found = invalid_lines("a\n\xFF\n\nb\n\xFF", 5);
  EXPECT_EQ(found.count, 2);
  EXPECT_EQ(found.first, 6);
  EXPECT_EQ(lines_in(""), 0);
  EXPECT_EQ(lines_in("a"), 1);
  EXPECT_EQ(lines_in("a\n"), 1);
  EXPECT_EQ(lines_in("a\n\nb"), 3);
}

}  // namespace
}  // namespace stretto::data
