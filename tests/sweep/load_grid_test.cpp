#include "sweep/load_grid.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::sweep {
namespace {

using stretto::testing::failure;
using stretto::testing::TempDir;

void expect_refusal_of_grid(const std::string& toml, const std::string& part) {
  const TempDir folder;
  const std::string path = folder.write("grid.toml", "[grid]\n" + toml);
  const auto error = failure(ExitCode::kUsage, [&] { load_grid(path); });
  EXPECT_NE(error.message().find(part), std::string::npos) << toml << "\n" << error.message();
}

TEST(LoadGrid, ReadsWhatIsAskedAndKeepsDefaults) {
  const TempDir folder;
  const std::string path =
      folder.write("grid.toml", "[grid]\nbits = [32, 4]\nsparsity = [0, 0.5]\ngroup = 64\n");
  const GridOptions grid = load_grid(path);
  EXPECT_EQ(grid.bits, (std::vector<double>{32, 4}));
  EXPECT_EQ(grid.sparsity, (std::vector<double>{0, 0.5}));
  EXPECT_EQ(grid.group, 64);
  EXPECT_EQ(grid.rounding, "least_error");
  EXPECT_TRUE(grid.time);
}

TEST(LoadGrid, ReadsTheShippedGrid) {
  const std::filesystem::path source(STRETTO_SOURCE_DIR);
  const GridOptions grid = load_grid(source / "configs/smoke/compress.toml");
  EXPECT_EQ(grid.bits.front(), 32) << "the run as it is stands beside the others";
  EXPECT_EQ(grid.group, 32);
}

TEST(LoadGrid, RefusesBitsAndSharesThatThereAreNot) {
  expect_refusal_of_grid("bits = [5]\n", "has 5 bits");
  expect_refusal_of_grid("bits = [8, 2.5]\n", "has 2.5 bits");
  expect_refusal_of_grid("bits = [16]\n", "8, 6, 4, 3 and 2 are possible");
  expect_refusal_of_grid("sparsity = [1.0]\n", "has the share 1");
  expect_refusal_of_grid("sparsity = [-0.1]\n", "from 0 to below 1");
  expect_refusal_of_grid("rounding = \"best\"\n", "grid.rounding");
  expect_refusal_of_grid("group = 1000000000000\n", "grid.group");
  expect_refusal_of_grid("seconds = 1e300\n", "grid.seconds");
  expect_refusal_of_grid("seconds = 0.01\n", "grid.seconds");
  expect_refusal_of_grid("bit = [8]\n", "bits");
}

TEST(LoadGrid, RefusesAGridThatAsksForNothing) {
  expect_refusal_of_grid("bits = []\n", "asks for nothing");
  expect_refusal_of_grid("sparsity = []\n", "asks for nothing");
  expect_refusal_of_grid("bits = [32]\n", "asks for nothing");
}

TEST(LoadGrid, RefusesAConfigurationWithTheCommandThatTakesIt) {
  const TempDir folder;
  const std::string path = folder.write("one.toml", "[model]\nname = \"lstm\"\n[optim]\nlr = 1\n");
  const auto error = failure(ExitCode::kUsage, [&] { load_grid(path); });
  const std::string& said = error.message();
  EXPECT_NE(said.find("no grid"), std::string::npos) << said;
  EXPECT_NE(said.find("stretto train " + path), std::string::npos) << said;
  EXPECT_EQ(said.find("unknown"), std::string::npos) << said;
}

TEST(LoadGrid, IsOneProblemWhereAConfigurationIsExpected) {
  const TempDir folder;
  const std::string grid = folder.write("grid.toml", "[grid]\nbits = [8]\n");
  const auto problems = problems_as_configuration(grid);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_NE(problems[0].hint.find("--grid " + grid + " --dir DIR"), std::string::npos);
  const std::string more = folder.write("more.toml", "include = \"grid.toml\"\n");
  EXPECT_EQ(problems_as_configuration(more).size(), 1u);
  for (const char* text : {"[grid]\nbits = [8]\n[optim]\nlr = 1e-3\n", "grid = 3\n", "[grid", ""}) {
    EXPECT_TRUE(problems_as_configuration(folder.write("other.toml", text)).empty()) << text;
  }
  EXPECT_TRUE(problems_as_configuration(folder / "nowhere.toml").empty());
}

}  // namespace
}  // namespace stretto::sweep
