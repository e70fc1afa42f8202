#include "ctc/ctc_labels.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stretto::ctc {
namespace {

TEST(CtcLabels, NamesTellTheSeparatorMarksAndTexts) {
  const CtcLabels labels =
      labels_by_name({"a", "<space>", "\u2581the", "\u2581", "<pad>", "|", "["});
  EXPECT_EQ(labels.size(), 7);
  EXPECT_EQ(labels.separator, 1) << "the first of several";
  EXPECT_EQ(labels.texts, (std::vector<std::string>{"a", " ", "the", "", "", "|", "["}));
  EXPECT_EQ(labels.begins_word, (std::vector<bool>{false, false, true, true, false, false, false}));
}

TEST(CtcLabels, LabelsMayHaveNoSeparator) {
  EXPECT_EQ(labels_by_name({"AH", "EH"}).separator, -1);
}

}  // namespace
}  // namespace stretto::ctc
