#include "data/documents/exact_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "tests/base/failure.h"
#include "tests/data/memory_stream.h"

namespace stretto::data {
namespace {

/// Gives so many bytes at a time.
class SlowStream final : public ByteStream {
 public:
  SlowStream(std::string_view bytes, size_t step) : bytes_(bytes), step_(step) {}
  size_t read(char* buffer, size_t capacity) override {
    const size_t got = std::min({bytes_.size(), capacity, step_});
    bytes_.copy(buffer, got);
    bytes_.remove_prefix(got);
    return got;
  }

 private:
  std::string_view bytes_;
  size_t step_;
};

struct ReadPiece {
  std::string text;
  bool begins = false;
  int64_t line = 0;
  bool operator==(const ReadPiece&) const = default;
};

std::vector<ReadPiece> pieces_of(std::string_view bytes, const ExactDocuments& documents,
                                 BadSamples* bad = nullptr, size_t step = size_t{1} << 20) {
  ExactText text(std::make_unique<SlowStream>(bytes, step), "t.txt", documents, bad);
  std::vector<ReadPiece> pieces;
  std::string_view piece;
  for (bool begins = false; text.next(piece, begins);) {
    pieces.push_back({std::string(piece), begins, text.line_number()});
  }
  return pieces;
}

/// All pieces, with `#` before those that begin a document.
std::string told(std::string_view bytes, const ExactDocuments& documents,
                 BadSamples* bad = nullptr) {
  std::string text;
  for (const auto& piece : pieces_of(bytes, documents, bad)) {
    text += (piece.begins ? "#" : "") + piece.text + "|";
  }
  return text;
}

TEST(ExactText, KeepsTheBytesOfDocumentsThatAreToldApart) {
  struct Case {
    std::string bytes;
    ExactDocuments documents;
    std::string wanted;
  };
  const ExactDocuments file{DocumentEnd::kFile}, blank{DocumentEnd::kBlankLine},
      line{DocumentEnd::kLine}, marker{DocumentEnd::kMarker, "<end>"};
  const std::vector<Case> cases{
      {"", file, ""},
      {"\n", file, "#\n|"},
      {"a \r\n\n \tb\n\nc", file, "#a \r\n\n \tb\n\nc|"},
      {"\xEF\xBB\xBF"
       "a\rb\r",
       file,
       "#\xEF\xBB\xBF"
       "a\rb\r|"},
      {"a\nb\n\nc\n \t\r\n\nd\ne", blank, "#a\nb\n|#c\n|#d\ne|"},
      {"\n\n  a\n\n\n", blank, "#  a\n|"},
      {"\n \n", blank, ""},
      {" a \r\nb\n\nc", line, "# a \r|#b|#c|"},
      {"a\n\nb\n<end>\n\n<end>\r\n<end>\n<end>x\nc<end>\n", marker,
       "#a\n\nb\n|#\n|#<end>x\nc<end>\n|"},
      {"<end>\na\n<end>", marker, "#a\n|"},
      {"a\n\nb\n", {DocumentEnd::kMarker, ""}, "#a\n|#b\n|"},
  };
  for (const auto& one : cases) EXPECT_EQ(told(one.bytes, one.documents), one.wanted);
}

TEST(ExactText, NamesTheLineInWhichAPieceBegins) {
  const auto pieces = pieces_of("\na\nb\n\n\nc\n", {DocumentEnd::kBlankLine});
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].line, 2);
  EXPECT_EQ(pieces[1].line, 6);
}

TEST(ExactText, CutsLongDocumentsBehindLinesAndLongLinesBetweenWordsOrCharacters) {
  const std::string words = "word word ";
  std::string line, characters, lines;
  while (line.size() < 3 * kMaxPieceBytes) line += words;
  while (characters.size() < 2 * kMaxPieceBytes) characters += "\xE4\xB8\xAD";
  while (lines.size() < 2 * kMaxPieceBytes) lines += words + "\n";
  const std::string solid(2 * kMaxPieceBytes + 5, 'x');
  const std::string broken(2 * kMaxPieceBytes, '\x80');
  for (const auto& text : {line, characters, lines, solid, broken, "a\n" + line + "\nb\n"}) {
    const auto pieces = pieces_of(text, {});
    std::string all;
    for (size_t i = 0; i < pieces.size(); ++i) {
      EXPECT_LE(pieces[i].text.size(), kMaxPieceBytes);
      EXPECT_EQ(pieces[i].begins, i == 0);
      all += pieces[i].text;
    }
    EXPECT_GE(pieces.size(), 3u);
    EXPECT_TRUE(all == text) << text.substr(0, 20);
    EXPECT_TRUE(pieces_of(text, {}, nullptr, 4099) == pieces) << "it depends on the reads";
  }
  for (const auto& piece : pieces_of(characters, {})) EXPECT_TRUE(is_valid_utf8(piece.text));
  EXPECT_EQ(pieces_of(line, {})[1].text.substr(0, 5), " word");
  EXPECT_TRUE(pieces_of(lines, {})[0].text.ends_with("\n"));
  const auto by_line = pieces_of("a\n" + solid + "\nb", {DocumentEnd::kLine});
  ASSERT_EQ(by_line.size(), 5u);
  EXPECT_FALSE(by_line[2].begins);
  EXPECT_EQ(by_line[4], (ReadPiece{"b", true, 3}));
}

TEST(ExactText, ADocumentAsLongAsAPieceIsOne) {
  std::string text(kMaxPieceBytes - 1, 'x');
  text += "\n";
  EXPECT_EQ(pieces_of(text, {}).size(), 1u);
  EXPECT_EQ(pieces_of(text + "\n", {}).size(), 2u);
}

TEST(ExactText, BadLinesAreLeftOutOrNamedTogether) {
  const std::string text("a\nb\0\n\0\n\nc\nd\0\n", 13);
  const auto error = testing::failure(ExitCode::kBadData, [&] { told(text, {}); });
  EXPECT_NE(error.message().find("t.txt:2:2: a NUL byte"), std::string::npos) << error.message();
  BadSamples skip({.skips = true});
  EXPECT_EQ(told(text, {}, &skip), "#a\n\nc\n|");
  EXPECT_EQ(skip.left_out().count, 3);
  BadSamples stop;
  const auto all = testing::failure(ExitCode::kBadData, [&] { told(text, {}, &stop); });
  EXPECT_NE(all.message().find("t.txt:2:2"), std::string::npos) << all.message();
  EXPECT_NE(all.message().find("6:2"), std::string::npos) << all.message();
  std::string line(kMaxPieceBytes, 'x');
  line += std::string("yy\0zz\nb\n", 8);
  BadSamples rest({.skips = true});
  const auto pieces = pieces_of(line, {}, &rest);
  EXPECT_EQ(pieces.back().text, "b\n");
  EXPECT_EQ(rest.left_out().count, 1);
}

}  // namespace
}  // namespace stretto::data
