#include "sweep/swept_point.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/base/failure.h"

namespace stretto::sweep {
namespace {

using stretto::testing::failure;
using Words = std::vector<std::string>;

SweptRun run_of(const std::string& directory, const std::string& name) {
  SweptRun run;
  run.directory = directory;
  run.name = name;
  run.scores = {{"accuracy", true}, {"nll", false}};
  run.best_metric = "accuracy";
  return run;
}

PointResult result_of(const std::string& name, uint64_t bytes, double score) {
  PointResult result;
  result.point.name = name;
  result.run = "a";
  result.bytes = bytes;
  result.score = score;
  return result;
}

TEST(SweptPoint, AreAllCombinationsOfEachRunOnce) {
  GridOptions grid;
  grid.bits = {32, 4, 4};
  grid.sparsity = {0, 0.5};
  std::vector<SweptRun> runs{run_of("/x/a", "a"), run_of("/y/a", "a")};
  const auto points = points_of(grid, runs);
  Words names;
  for (const auto& point : points) names.push_back(point.name);
  EXPECT_EQ(names, (Words{"a-32bit", "a-32bit-s0.5", "a-4bit", "a-4bit-s0.5", "a-2-32bit",
                          "a-2-32bit-s0.5", "a-2-4bit", "a-2-4bit-s0.5"}));
  EXPECT_TRUE(points[0].is_plain());
  EXPECT_FALSE(points[1].is_plain());
  EXPECT_EQ(points[4].run, 1U);
}

TEST(SweptPoint, IsCompressedByTheWordsOfACommand) {
  GridOptions grid;
  grid.group = 32;
  grid.symmetric = false;
  grid.keep = {"head.*"};
  grid.bits_of = {"embed*=8"};
  const auto run = run_of("/x/a", "a");
  const SweptPoint both{.run = 0, .bits = 4, .sparsity = 0.25, .name = "p"};
  EXPECT_EQ(compress_words(grid, both, run, "last", "/out"),
            (Words{"compress",     "/x/a",        "--run",    "/out",
                   "--checkpoint", "last",        "--bits",   "4",
                   "--rounding",   "least_error", "--group",  "32",
                   "--asymmetric", "--bits-of",   "embed*=8", "--keep",
                   "head.*",       "--prune",     "0.25",     "--prune-scope",
                   "global"}));
  const SweptPoint pruned{.run = 0, .bits = 32, .sparsity = 0.5, .name = "p"};
  EXPECT_EQ(
      compress_words({}, pruned, run, "", "/out"),
      (Words{"compress", "/x/a", "--run", "/out", "--prune", "0.5", "--prune-scope", "global"}));
}

TEST(SweptPoint, IsComparedByAScoreThatAllRunsHave) {
  std::vector<SweptRun> runs{run_of("/x/a", "a"), run_of("/x/b", "b")};
  GridOptions grid;
  EXPECT_EQ(metric_of(grid, runs).name, "accuracy");
  EXPECT_TRUE(metric_of(grid, runs).higher_is_better);
  grid.metric = "nll";
  EXPECT_FALSE(metric_of(grid, runs).higher_is_better);
  grid.metric = "speed";
  const auto error = failure(ExitCode::kUsage, [&] { metric_of(grid, runs); });
  EXPECT_NE(std::string(error.what()).find("it has accuracy, nll"), std::string::npos);
  grid.goal = "maximize";
  EXPECT_TRUE(metric_of(grid, runs).higher_is_better);
  runs[1].scores.pop_back();
  grid = {};
  grid.metric = "nll";
  failure(ExitCode::kUsage, [&] { metric_of(grid, runs); });
}

TEST(SweptPoint, ResultsComeBackFromJson) {
  PointResult result = result_of("a-4bit", 1234, 0.75);
  result.rate = 200;
  result.unit = "tokens";
  const PointResult back = read_result(result_json(result), "here");
  EXPECT_EQ(back.point.name, "a-4bit");
  EXPECT_EQ(back.bytes, 1234U);
  EXPECT_EQ(back.score, 0.75);
  ASSERT_TRUE(back.latency().has_value());
  EXPECT_DOUBLE_EQ(*back.latency(), 5000);
  EXPECT_FALSE(read_result(result_json(result_of("b", 1, 1)), "here").latency().has_value());
  auto broken = result_json(result);
  broken["bytes"] = "many";
  failure(ExitCode::kBadData, [&] { read_result(broken, "here"); });
}

TEST(SweptPoint, FindsNumbersInWhatProgramsPrint) {
  const auto json =
      last_object("a warning\n{\"x\": 1}\n{\"set\": \"test\", \"in\": {\"nll\": 2.5}}\n", "log");
  EXPECT_EQ(find_number(json, "nll"), 2.5);
  EXPECT_FALSE(find_number(json, "set").has_value());
  const auto lines =
      last_object("a word\n{\n  \"in\": {\n    \"nll\": 3\n  }\n}\nthe end\n", "log");
  EXPECT_EQ(find_number(lines, "nll"), 3.0);
  failure(ExitCode::kBadData, [] { last_object("nothing\n", "log"); });
}

}  // namespace
}  // namespace stretto::sweep
