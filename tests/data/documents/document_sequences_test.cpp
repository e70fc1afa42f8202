#include "data/documents/document_sequences.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/error.h"
#include "data/documents/documents_count.h"
#include "tests/base/failure.h"
#include "tests/data/documents/documents_fixture.h"

namespace stretto::data {
namespace {

using Ids = std::vector<int64_t>;

class DocumentSequencesTest : public stretto::testing::DocumentsFixture {
 protected:
  DocumentSequences sequences(const std::string& text, Packing packing, int64_t max_tokens) const {
    return {open({folder_.write("a.txt", text)}), *tokenizer_, packing, max_tokens};
  }
  static Ids ids_of(const DocumentSequences& sequences, int64_t sample) {
    Ids ids, segments;
    sequences.append(sample, ids, segments);
    EXPECT_EQ(segments, Ids(ids.size()));
    return ids;
  }
  /// The order of lengths has each sample once, under its length.
  static void expect_order(const DocumentSequences& sequences) {
    const auto& runs = sequences.runs();
    std::vector<bool> seen(static_cast<size_t>(sequences.size()));
    int64_t rows = 0;
    for (size_t run = 0; run < runs.size(); ++run) {
      for (uint64_t at = runs.begins[run]; at < runs.begins[run + 1]; ++at) {
        const int64_t sample = sequences.sample_at(at);
        EXPECT_FALSE(seen.at(static_cast<size_t>(sample)));
        seen.at(static_cast<size_t>(sample)) = true;
        EXPECT_EQ(ids_of(sequences, sample).size(), runs.lengths_of(run)[0]) << sample;
        rows += static_cast<int64_t>(ids_of(sequences, sample).size());
      }
      if (run > 0) {
        EXPECT_LT(runs.lengths_of(run - 1)[0], runs.lengths_of(run)[0]);
      }
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), true), sequences.size());
    EXPECT_EQ(rows, sequences.num_rows());
  }
};

TEST_F(DocumentSequencesTest, PackedDocumentsFillSequences) {
  const auto packed = sequences("w0 w1\n\nw2\nw3 w4\n\nw5\n", Packing::kPacked, 5);
  ASSERT_EQ(packed.size(), 3);
  EXPECT_EQ(ids_of(packed, 0), (Ids{2, 5, 6, 3, 3}));
  EXPECT_EQ(ids_of(packed, 1), (Ids{2, 7, 8, 9, 3}));
  EXPECT_EQ(ids_of(packed, 2), (Ids{2, 3, 10, 3}));
  expect_order(packed);
}

TEST_F(DocumentSequencesTest, OneDocumentASequenceIsCutWhereItIsLonger) {
  const auto alone = sequences("w0 w1\n\nw2\nw3 w4 w5\n\nw6\n", Packing::kDocument, 5);
  ASSERT_EQ(alone.size(), 4);
  EXPECT_EQ(ids_of(alone, 0), (Ids{2, 5, 6, 3}));
  EXPECT_EQ(ids_of(alone, 1), (Ids{2, 7, 8, 9, 3}));
  EXPECT_EQ(ids_of(alone, 2), (Ids{2, 10, 3}));
  EXPECT_EQ(ids_of(alone, 3), (Ids{2, 11, 3}));
  EXPECT_EQ(alone.num_split(), 1);
  expect_order(alone);
}

TEST_F(DocumentSequencesTest, HaveEachTokenOnce) {
  const std::string text = documents_text(200, 3);
  for (const Packing packing : {Packing::kPacked, Packing::kDocument}) {
    for (const int64_t max_tokens : {4, 7, 16, 100, 100000}) {
      const auto made = sequences(text, packing, max_tokens);
      Ids words;
      for (int64_t i = 0; i < made.size(); ++i) {
        const Ids ids = ids_of(made, i);
        EXPECT_LE(static_cast<int64_t>(ids.size()), max_tokens);
        EXPECT_EQ(ids.front(), 2);
        EXPECT_EQ(ids.back(), kSep);
        const size_t before = words.size();
        std::copy_if(ids.begin() + 1, ids.end(), std::back_inserter(words),
                     [](int64_t id) { return id != kSep; });
        EXPECT_GT(words.size(), before) << "a sequence has text";
        if (packing == Packing::kPacked && i + 1 < made.size()) {
          EXPECT_EQ(static_cast<int64_t>(ids.size()), max_tokens) << "full";
        }
      }
      Ids expected = all_ids(made.documents());
      std::erase(expected, kSep);
      EXPECT_EQ(words, expected) << max_tokens;
      expect_order(made);
    }
  }
}

/// What count_document_tokens() says of text in one file.
class DocumentTokensTest : public DocumentSequencesTest {
 protected:
  DocumentTokens count(const std::string& text, Packing packing, int64_t max_tokens,
                       const std::function<bool()>& still_time) const {
    return count_document_tokens({.paths = {folder_.write("a.txt", text)}, .key = "data.train"},
                                 *tokenizer_, SequenceRows(*tokenizer_, packing, max_tokens),
                                 still_time);
  }
};

TEST_F(DocumentTokensTest, AreCountedAsTheSequencesHaveThem) {
  const std::string text = documents_text(200, 3) + "\u3000\n\nw1 what\n\n\xff w2\nno\n\n\u00AD\n";
  for (const Packing packing : {Packing::kPacked, Packing::kDocument}) {
    for (const int64_t max_tokens : {4, 7, 16, 100, 100000}) {
      const auto made = sequences(text, packing, max_tokens);
      const auto found = count(text, packing, max_tokens, [] { return true; });
      EXPECT_EQ(found.sequences, made.size()) << max_tokens;
      EXPECT_EQ(found.rows, made.num_rows()) << max_tokens;
      EXPECT_EQ(found.unknown, made.documents().counts().unknown);
      EXPECT_GE(found.unknown, 2);
      EXPECT_EQ(found.unread, "");
    }
  }
}

TEST_F(DocumentTokensTest, SayWhereTheTimeWasOver) {
  int lines = 0;
  const auto found = count("w0\nw1\n\nw2\nw3\n", Packing::kPacked, 8, [&] { return ++lines < 3; });
  EXPECT_TRUE(found.unread.ends_with("a.txt from line 4 on")) << found.unread;
}

TEST_F(DocumentTokensTest, ATextWithoutADocumentIsRefusedAsTrainingRefusesIt) {
  const auto always = [] { return true; };
  const auto error = stretto::testing::failure(
      ExitCode::kBadData, [&] { count("\u3000\n", Packing::kPacked, 8, always); });
  EXPECT_NE(std::string(error.what()).find("data.train: there is no document"), std::string::npos);
}

TEST_F(DocumentSequencesTest, BoundsAreKept) {
  const auto packed = sequences("w0 w1\n", Packing::kPacked, 4);
  Ids ids;
  EXPECT_THROW(packed.append(1, ids, ids), std::out_of_range);
  EXPECT_THROW(packed.append(-1, ids, ids), std::out_of_range);
  EXPECT_THROW(sequences("w0\n", Packing::kPacked, 3), std::invalid_argument);
}

}  // namespace
}  // namespace stretto::data
