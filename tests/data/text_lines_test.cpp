#include "data/text_lines.h"

#include "tests/data/pairs/corpus_fixture.h"

namespace stretto::data {
namespace {

class TextLines : public CorpusFixture {};

TEST_F(TextLines, AreThoseOfAllFilesOneAfterTheOther) {
  const auto source = open_lines({write("a", "one\ntwo"), write("b", ""), write("c", "three\n")});
  std::vector<std::string> lines;
  for (std::string line; source->next(line);) lines.push_back(line);
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two", "three"}));
}

TEST_F(TextLines, KnowTheirFileAndTheirNumberThere) {
  const std::string first = write("a", "one\n"), second = write("b", "two\nthree\n");
  LinesOfFiles source({first, second});
  std::vector<std::string> places;
  for (std::string_view line; source.next(line);) {
    places.push_back(source.reader().name() + ":" + std::to_string(source.reader().line_number()) +
                     " " + std::string(line));
  }
  EXPECT_EQ(places,
            (std::vector<std::string>{first + ":1 one", second + ":1 two", second + ":2 three"}));
}

}  // namespace
}  // namespace stretto::data
