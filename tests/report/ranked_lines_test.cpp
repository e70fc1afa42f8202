#include "report/ranked_lines.h"

#include <gtest/gtest.h>

#include <regex>

#include "tests/report/markup.h"

namespace stretto::report {
namespace {

/// The paths of the lines as they lie over one another, the topmost last; the best one is marked.
std::vector<std::string> drawn(const std::string& figure) {
  const std::regex line(
      "<path class=\"ranked( winner)?\" style=\"opacity:([^\"]*)\" d=\"([^\"]*)\"");
  std::vector<std::string> found;
  for (std::sregex_iterator at(figure.begin(), figure.end(), line), end; at != end; ++at) {
    found.push_back((*at)[3].str() + " " + (*at)[2].str() + ((*at)[1].length() > 0 ? " best" : ""));
  }
  return found;
}

using Lines = std::vector<std::string>;

// By hand: axes at x 64, 460 and 856, whose feet are at y 276 and heads at y 40.
TEST(ParallelCoordinates, TheBestLineLiesOnTopAndEndsAtTheHead) {
  const auto figure = render_parallel_coordinates(
      {.title = "Points",
       .summary = "",
       .axes = {{"lr", {{0, "1e-4"}, {1, "1e-2"}}}, {"<width>", {{0.5, "64"}}}},
       .lines = {{"first & best", {{0, 0.5}, {1, 1}}}, {"second", {{1, 0}}}, {"third", {}}}});
  EXPECT_EQ(testing::markup_error(figure), "");
  EXPECT_EQ(drawn(figure),
            (Lines{"M856 276 0.16", "M460 276L856 158 0.46", "M64 158L460 40L856 40 0.75 best"}));
  EXPECT_NE(figure.find("<title>first &amp; best</title>"), std::string::npos);
  EXPECT_NE(figure.find(">&lt;width&gt;</text>"), std::string::npos);
  EXPECT_NE(figure.find("y=\"158\" dy=\".34em\">64</text>"), std::string::npos);
}

TEST(RankedCurves, ALineWithoutAPointIsLeftOutAndNoOtherIsTheBest) {
  const std::vector<Point> falling{{10, 3}, {20, 2}};
  const auto figure = render_ranked_curves({.title = "loss",
                                            .summary = "2 trials",
                                            .lines = {{"best", {}}, {"a", falling}, {"b", falling}},
                                            .last_step = 40});
  EXPECT_EQ(testing::markup_error(figure), "");
  const auto lines = drawn(figure);
  ASSERT_EQ(lines.size(), 2u);
  for (const auto& line : lines) EXPECT_EQ(line.find("best"), std::string::npos) << line;
  EXPECT_NE(figure.find(">40</text>"), std::string::npos) << "the axis reaches to the last step";
  EXPECT_NE(figure.find("viewBox=\"0 0 920 236\""), std::string::npos)
      << "its letters are as large as those of the points below it";
}

TEST(RankedCurves, WithoutAnyPointNothingWasMeasured) {
  const auto figure = render_ranked_curves({.title = "loss", .summary = "", .lines = {{"a", {}}}});
  EXPECT_NE(figure.find("Nothing measured yet"), std::string::npos);
  EXPECT_EQ(testing::markup_error(figure), "");
}

}  // namespace
}  // namespace stretto::report
