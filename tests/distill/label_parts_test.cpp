#include "distill/label_parts.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::distill {
namespace {

TEST(LabelParts, CutsTextsIntoPartsWithoutLinesThatNobodyCanLabel) {
  const testing::TempDir folder;
  const auto plain = folder.write("a.en", "one\n\ntwo\n \nthree\nbad \xff\nfour\n");
  const auto table = folder.write("b.tsv", "uno;eins\ndue;zwei\n");
  const auto cut = cut_texts({{.path = plain}, {.path = table, .column = 2, .separator = ';'}},
                             folder / "labels", 3);
  EXPECT_EQ(cut.lines, 6);
  EXPECT_EQ(cut.left_out, 3);
  ASSERT_EQ(cut.parts.size(), 3U);
  const auto text_of = [&](size_t part) {
    return read_file(source_of(cut.parts[part], folder / "labels"));
  };
  EXPECT_EQ(text_of(0), "one\ntwo\nthree\n");
  EXPECT_EQ(text_of(1), "four\n");
  EXPECT_EQ(text_of(2), "eins\nzwei\n");
  EXPECT_EQ(cut.parts[1].number, 1);
  EXPECT_EQ(cut.parts[2].text, 1U);
}

TEST(LabelParts, RefusesALineWithoutItsColumnAndTextsWithoutALine) {
  const testing::TempDir folder;
  const auto table = folder.write("b.tsv", "uno\teins\ndue\n");
  const auto error = testing::failure(
      ExitCode::kBadData, [&] { cut_texts({{.path = table, .column = 2}}, folder / "labels"); });
  EXPECT_NE(error.message().find("b.tsv:2: has no column 2"), std::string::npos) << error.message();
  const auto empty = folder.write("c.en", "\n\n");
  testing::failure(ExitCode::kBadData, [&] { cut_texts({{.path = empty}}, folder / "none"); });
}

TEST(LabelParts, JoinsTextsAndLabelsLineForLineWithoutEmptyLabels) {
  const testing::TempDir folder;
  const auto text = folder.write("a.en", "one\ntwo\nthree\nfour\n");
  const auto cut = cut_texts({{.path = text}}, folder / "labels", 2);
  write_file_atomic(labels_of(cut.parts[0], folder / "labels"), "un\n\n");
  write_file_atomic(labels_of(cut.parts[1], folder / "labels"), "trois\nquatre\n");
  const auto joined = join_parts(cut.parts, 0, folder / "labels");
  EXPECT_EQ(joined.lines, 3);
  EXPECT_EQ(joined.without_label, 1);
  EXPECT_EQ(read_file(joined.files.text), "one\nthree\nfour\n");
  EXPECT_EQ(read_file(joined.files.labels), "un\ntrois\nquatre\n");
}

TEST(LabelParts, RefusesLabelsThatAreNotAsManyAsLines) {
  const testing::TempDir folder;
  const auto text = folder.write("a.en", "one\ntwo\n");
  const auto cut = cut_texts({{.path = text}}, folder / "labels", 2);
  for (const char* labels : {"un\n", "un\ndeux\ntrois\n"}) {
    write_file_atomic(labels_of(cut.parts[0], folder / "labels"), labels);
    testing::failure(ExitCode::kBadData, [&] { join_parts(cut.parts, 0, folder / "labels"); });
  }
}

}  // namespace
}  // namespace stretto::distill
