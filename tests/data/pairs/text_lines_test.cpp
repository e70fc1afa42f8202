#include "data/pairs/text_lines.h"

#include "tests/data/pairs/corpus_fixture.h"

namespace stretto::data {
namespace {

using Strings = std::vector<std::string>;

class TextLines : public CorpusFixture {};

TEST_F(TextLines, AreThoseOfAllFilesOneAfterTheOther) {
  const auto source = open_lines({write("a", "one\ntwo"), write("b", ""), write("c", "three\n")});
  Strings lines;
  for (std::string line; source->next(line);) lines.push_back(line);
  EXPECT_EQ(lines, (Strings{"one", "two", "three"}));
}

TEST_F(TextLines, AreThoseOfAColumnOfTsvFilesOneAfterTheOther) {
  const std::string path = write("a.tsv", "1\tone\tun\n2\t\tdeux\r\n");
  const auto source = open_tsv_column({path, path}, 3);
  Strings lines;
  for (std::string line; source->next(line);) lines.push_back(line);
  EXPECT_EQ(lines, (Strings{"un", "deux", "un", "deux"}));
  const auto beyond = open_tsv_column({path}, 4);
  std::string line;
  EXPECT_TRUE(contains(failure(ExitCode::kBadData, [&] { beyond->next(line); }),
                       path + ":1: this line has no column 4"));
}

}  // namespace
}  // namespace stretto::data
