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

}  // namespace
}  // namespace stretto::data
