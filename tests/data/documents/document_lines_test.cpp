#include "data/documents/document_lines.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/data/memory_stream.h"

namespace stretto::data {
namespace {

/// All lines, with `#` before those that begin a document.
std::string lines_of(std::string_view bytes, DocumentEnd end) {
  DocumentLines lines(std::make_unique<testing::MemoryStream>(bytes), "t.txt", end);
  std::string text;
  std::string_view line;
  for (bool begins = false; lines.next(line, begins);) {
    text += (begins ? "#" : "") + std::string(line) + "|";
  }
  return text;
}

TEST(DocumentLines, BlankLinesEndDocuments) {
  EXPECT_EQ(lines_of("a\nb\n\nc\n \t\r\n\nd\ne", DocumentEnd::kBlankLine), "#a|b|#c|#d|e|");
  EXPECT_EQ(lines_of("\n\na\n\n\n", DocumentEnd::kBlankLine), "#a|");
  EXPECT_EQ(lines_of("", DocumentEnd::kBlankLine), "");
  EXPECT_EQ(lines_of("\n \n", DocumentEnd::kBlankLine), "");
}

TEST(DocumentLines, EachLineMayBeADocument) {
  EXPECT_EQ(lines_of("a\nb\n\nc", DocumentEnd::kLine), "#a|#b|#c|");
}

TEST(DocumentLines, LinesStayAsTheyStandThere) {
  EXPECT_EQ(lines_of("  a  b \r\nc\u2028d\n", DocumentEnd::kBlankLine), "#  a  b |c\u2028d|");
}

TEST(DocumentLines, BadLinesAreNamed) {
  const Error error = testing::failure(ExitCode::kBadData, [] {
    lines_of(std::string_view("a\n\nb\0c\n", 7), DocumentEnd::kBlankLine);
  });
  EXPECT_NE(std::string(error.what()).find("t.txt:3"), std::string::npos) << error.what();
}

TEST(DocumentLines, BadLinesAreLeftOutOrNamedTogether) {
  const std::string_view text("a\nb\0\n\0\n\nc\nd\0\n", 13);
  const auto read = [&](BadSamples& bad) {
    DocumentLines lines(std::make_unique<testing::MemoryStream>(text), "t.txt",
                        DocumentEnd::kBlankLine, &bad);
    std::string found;
    std::string_view line;
    for (bool begins = false; lines.next(line, begins);) {
      found += (begins ? "#" : "") + std::string(line) + "|";
    }
    return found;
  };
  BadSamples skip({.skips = true});
  EXPECT_EQ(read(skip), "#a|#c|");
  EXPECT_EQ(skip.left_out().count, 3);
  EXPECT_EQ(skip.left_out().first[1].fault, ":3:1: a NUL byte, so this is not UTF-8 text");
  BadSamples stop;
  const Error error = testing::failure(ExitCode::kBadData, [&] { read(stop); });
  EXPECT_TRUE(std::string(error.what()).starts_with("t.txt:2:2: a NUL byte")) << error.what();
  EXPECT_NE(std::string(error.what()).find("2 more: 3:1: a NUL byte"), std::string::npos)
      << error.what();
}

TEST(DocumentLines, ALineWithoutAnEndIsToldHowItCanBeRead) {
  const auto advice = [](DocumentEnd end, const std::string& text) {
    return testing::failure(ExitCode::kBadData, [&] { lines_of(text, end); }).advice();
  };
  const std::string endless(1'000'000, 'a');
  EXPECT_NE(advice(DocumentEnd::kEachLine, endless).find("data.format = \"documents\""),
            std::string::npos);
  EXPECT_EQ(advice(DocumentEnd::kLine, endless).find("data.format"), std::string::npos)
      << "other tasks read such lines";
  EXPECT_EQ(advice(DocumentEnd::kEachLine, std::string("a\0", 2)).find("data.format"),
            std::string::npos);
  BadSamples stop;
  const auto error = testing::failure(ExitCode::kBadData, [&] {
    DocumentLines lines(std::make_unique<testing::MemoryStream>(endless), "t.txt",
                        DocumentEnd::kEachLine, &stop);
    std::string_view line;
    for (bool begins = false; lines.next(line, begins);) {
    }
  });
  EXPECT_NE(error.advice().find("data.format"), std::string::npos) << error.advice();
}

TEST(DocumentLines, ReadsCompressedFiles) {
  const testing::TempDir folder;
  const std::string path = (folder / "t.gz").string();
  gzFile file = ::gzopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  ::gzputs(file, "a\n\nb\n");
  ::gzclose(file);
  DocumentLines lines(path, DocumentEnd::kBlankLine);
  std::string_view line;
  bool begins = false;
  ASSERT_TRUE(lines.next(line, begins));
  ASSERT_TRUE(lines.next(line, begins));
  EXPECT_EQ(line, "b");
  EXPECT_TRUE(begins);
  EXPECT_EQ(lines.line_number(), 3);
}

}  // namespace
}  // namespace stretto::data
