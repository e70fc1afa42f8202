#include "data/pairs/tsv_lines.h"

#include "tests/data/pairs/corpus_fixture.h"

namespace stretto::data {
namespace {

class TsvLines : public CorpusFixture {};

TEST_F(TsvLines, AreThoseOfAColumnOfFilesOneAfterTheOther) {
  const std::string path = write("a.tsv", "1\tone\tun\n2\t\tdeux\r\n");
  const auto source = open_tsv_column({path, path}, 3);
  std::vector<std::string> lines;
  for (std::string line; source->next(line);) lines.push_back(line);
  EXPECT_EQ(lines, (std::vector<std::string>{"un", "deux", "un", "deux"}));
  const auto beyond = open_tsv_column({path}, 4);
  std::string line;
  EXPECT_TRUE(contains(failure(ExitCode::kBadData, [&] { beyond->next(line); }),
                       path + ":1: this line has no column 4"));
}

TEST_F(TsvLines, AreCutAtTheSeparatorThatIsNamed) {
  const std::string path = write("a.txt", "1|one\tand|un\n");
  const auto source = open_tsv_column({path}, 2, '|');
  std::string line;
  ASSERT_TRUE(source->next(line));
  EXPECT_EQ(line, "one\tand");
}

TEST_F(TsvLines, ALineThatAnotherSeparatorDividesIsAnsweredWithIt) {
  const auto advice = [&](const std::string& text, char separator) {
    const auto source = open_tsv_column({write("a.txt", text)}, 2, separator);
    std::string line;
    try {
      source->next(line);
    } catch (const Error& error) {
      return error.advice();
    }
    return std::string("none");
  };
  EXPECT_TRUE(advice("one;un\n", '\t').starts_with("set data.separator = \";\""));
  EXPECT_TRUE(advice("one\tun\n", ';').starts_with("set data.separator = \"\\t\""));
  EXPECT_TRUE(advice("one\n", '\t').starts_with("columns are separated by one tab"));
  EXPECT_TRUE(advice("one\n", '|').starts_with("columns are separated by `|`"));
}

}  // namespace
}  // namespace stretto::data
