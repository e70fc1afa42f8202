#include "families/language_model/engine/continued_samples.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "data/documents/document_lines.h"
#include "data/documents/documents.h"
#include "tests/base/temp_dir.h"
#include "tests/families/language_model/engine/scripted_model.h"

namespace stretto::tasks {
namespace {

using stretto::testing::ScriptedModel;
using stretto::testing::TempDir;
using Rows = std::vector<std::pair<std::string, std::string>>;

class ContinuedSamples : public ::testing::Test {
 protected:
  /// The samples of a text, each line of which is a document.
  std::vector<Rows> of(const std::string& text, int64_t count, int64_t max_length = 64) {
    const auto tokenizer = ScriptedModel::tokenizer();
    const auto documents = data::open_documents({.paths = {folder_.write("text.txt", text)},
                                                 .end = data::DocumentEnd::kEachLine,
                                                 .cache_dir = (folder_ / "cache").string()},
                                                *tokenizer);
    decoding::GenerationOptions options;
    options.method = "beam";
    std::vector<Rows> rows;
    for (const auto& sample : continued_samples(ScriptedModel::generating(true, max_length),
                                                *tokenizer, *documents, options, count)) {
      rows.push_back(std::get<report::RowsSample>(sample).rows);
    }
    return rows;
  }

  TempDir folder_;
};

TEST_F(ContinuedSamples, ShowWhatTheModelAndTheTextSayBehindABeginning) {
  const auto rows = of("the cat mat .\nthe cat\n", 1);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0], (Rows{{"text", "the cat"},
                           {"the model goes on", " sat on mat ."},
                           {"the text goes on", " mat ."}}));
}

TEST_F(ContinuedSamples, AreSpreadOverTheText) {
  const auto rows = of("the cat\non mat\ncat sat\nmat .\n", 2);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0][0].second, "the");
  EXPECT_EQ(rows[1][0].second, "cat");
}

TEST_F(ContinuedSamples, StandWithinATextOfFewDocuments) {
  const auto rows = of("the cat sat on mat . the cat sat on\n", 2);  // 10 tokens and an end
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0][0].second, "the cat sat on mat");
  EXPECT_EQ(rows[1][0].second, ". the");
  EXPECT_EQ(rows[1][2].second, " cat sat on");
}

TEST_F(ContinuedSamples, LeaveOutWhatHasNothingToContinueOrNoRoom) {
  EXPECT_TRUE(of("the\n\n\n", 3).empty());
  EXPECT_TRUE(of("the cat sat on\n", 1, /*max_length=*/2).empty());
  EXPECT_TRUE(of("the cat\n", 0).empty());
}

}  // namespace
}  // namespace stretto::tasks
