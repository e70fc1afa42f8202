#include "sweep/sweep_page.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stretto::sweep {
namespace {

PointResult point_on_page(const std::string& run, int64_t bits, uint64_t bytes, double score) {
  PointResult result;
  result.run = run;
  result.point.bits = bits;
  result.point.name = run + "-" + std::to_string(bits) + "bit";
  result.bytes = bytes;
  result.score = score;
  result.rate = static_cast<double>(bits);
  result.unit = "tokens";
  return result;
}

const std::vector<PointResult> kResults{point_on_page("big", 8, 2'000'000, 0.9),
                                        point_on_page("big", 4, 1'000'000, 0.8),
                                        point_on_page("<script>", 8, 1'500'000, 0.7)};

SweepView view_of_results() {
  return {.results = kResults, .metric = {"accuracy", true}, .num_points = 4};
}

int64_t lines_with(const std::string& text, const std::string& part) {
  int64_t count = 0;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = text.find('\n', begin);
    if (text.substr(begin, end - begin).find(part) != std::string::npos) ++count;
    begin = end + 1;
  }
  return count;
}

TEST(SweepPage, TableMarksThePointsOfAFront) {
  const std::string table = sweep_table(view_of_results());
  EXPECT_EQ(lines_with(table, ""), 4);
  EXPECT_EQ(lines_with(table, "size"), 2) << table;
  EXPECT_NE(table.find("Pareto front"), std::string::npos);
  const std::string tsv = sweep_tsv(view_of_results());
  EXPECT_NE(tsv.find("big-4bit\tbig\t4\t0\t0\t1000000\t0\t0.8\t4\ttokens\tsize\n"),
            std::string::npos)
      << tsv;
}

TEST(SweepPage, HasACurveForEachRunAndEscapesNames) {
  const std::string page = render_sweep(view_of_results());
  EXPECT_NE(page.find("accuracy against the size of the model"), std::string::npos);
  EXPECT_NE(page.find("accuracy against measured time"), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt;"), std::string::npos);
  EXPECT_EQ(page.find("<script>"), std::string::npos);
  EXPECT_NE(page.find("running"), std::string::npos) << "a point of four is missing";
}

TEST(SweepPage, HasACurveForEachShareOfZeros) {
  auto results = kResults;
  results.front().point.sparsity = 0.5;
  const std::string page =
      render_sweep({.results = results, .metric = {"accuracy", true}, .num_points = 3});
  EXPECT_NE(page.find(">big, 50.0 % zeros</span>"), std::string::npos);
  EXPECT_NE(page.find(">big</span>"), std::string::npos);
  EXPECT_NE(page.find("MB; higher is better"), std::string::npos);
}

TEST(SweepPage, SaysThatItStoppedAndWhichPointsFailed) {
  SweepView view = view_of_results();
  view.has_ended = true;
  EXPECT_EQ(render_sweep(view).find(">running<"), std::string::npos);
  EXPECT_NE(render_sweep(view).find("stopped"), std::string::npos);
  view.failed = {"<b>-3bit"};
  const std::string page = render_sweep(view);
  EXPECT_NE(page.find("1 point failed"), std::string::npos);
  EXPECT_NE(page.find("Without a result: &lt;b&gt;-3bit"), std::string::npos);
}

TEST(SweepPage, CurvesOfManyRunsHaveColoursOfTheirOwn) {
  std::vector<PointResult> results;
  for (int run = 0; run < 5; ++run) {
    results.push_back(point_on_page("run" + std::to_string(run), 8, 1'000'000, 0.5 + 0.1 * run));
  }
  const std::string page =
      render_sweep({.results = results, .metric = {"accuracy", true}, .num_points = 5});
  EXPECT_NE(page.find("ink5\""), std::string::npos);
  EXPECT_NE(page.find(".ink5{"), std::string::npos);
}

TEST(SweepPage, IsThereBeforeTheFirstResult) {
  const SweepView view{.results = {}, .metric = {"nll", false}, .num_points = 3};
  EXPECT_NE(render_sweep(view).find("of 3"), std::string::npos);
  EXPECT_EQ(lines_with(sweep_table(view), "point"), 1);
}

}  // namespace
}  // namespace stretto::sweep
