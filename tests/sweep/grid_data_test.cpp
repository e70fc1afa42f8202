#include "sweep/grid_data.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/load.h"
#include "experiment/experiment_schema.h"
#include "sweep/load_grid.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::sweep {
namespace {

using stretto::testing::failure;
using stretto::testing::TempDir;
using Words = std::vector<std::string>;

/// A run of this family, such as `stretto import` writes: without data unless these lines name
/// some.
SweptRun imported_run(const std::string& family, const std::string& more = "") {
  experiment::Experiment experiment, fallback;
  std::vector<config::Problem> problems;
  config::load_text("[task]\nname = \"" + family + "\"\n" + more, "here", ".", {},
                    experiment::experiment_schema(experiment),
                    experiment::experiment_schema(fallback), problems);
  EXPECT_TRUE(problems.empty());
  return swept_run("/runs/" + family, experiment);
}

TEST(GridData, AreThoseOfTheRunWhereNoneAreNamed) {
  EXPECT_TRUE(eval_data_words({}, imported_run("language_model")).empty());
  EXPECT_TRUE(bench_data_words({}, imported_run("language_model")).empty());
}

TEST(GridData, AreWordsForEvalAndKeysForBench) {
  const TempDir folder;
  const std::string a = folder.write("a.txt", "a\n"), b = folder.write("b.txt", "b\n");
  GridOptions grid;
  for (const char* family : {"language_model", "text_classification", "speech_recognition"}) {
    const auto run = imported_run(family);
    grid.data = {a};
    EXPECT_EQ(eval_data_words(grid, run), (Words{"--data", a})) << family;
    EXPECT_EQ(bench_data_words(grid, run), (Words{"data.valid=" + a, "data.train=" + a}));
    grid.data = {a, b};
    EXPECT_EQ(eval_data_words(grid, run), (Words{"--data", a, "--data", b})) << family;
    const std::string both = "=[\"" + a + "\", \"" + b + "\"]";
    EXPECT_EQ(bench_data_words(grid, run), (Words{"data.valid" + both, "data.train" + both}));
  }
}

TEST(GridData, LeaveARunItsOwnTrainingData) {
  const TempDir folder;
  GridOptions grid;
  grid.data = {folder.write("a.txt", "a\n")};
  const auto run = imported_run("language_model", "[data]\ntrain = [\"own.txt\"]\n");
  EXPECT_EQ(bench_data_words(grid, run), (Words{"data.valid=" + grid.data[0]}));
}

TEST(GridData, OfTranslationAreASourceAndItsTranslation) {
  const TempDir folder;
  GridOptions grid;
  grid.data = {folder.write("a.src", "a\n"), folder.write("a.tgt", "b\n")};
  const auto run = imported_run("translation");
  EXPECT_EQ(eval_data_words(grid, run), (Words{"--src", grid.data[0], "--tgt", grid.data[1]}));
  const std::string source = grid.data[0], target = grid.data[1];
  EXPECT_EQ(bench_data_words(grid, run),
            (Words{"data.valid_src=" + source, "data.train_src=" + source,
                   "data.valid_tgt=" + target, "data.train_tgt=" + target}));
  grid.data.pop_back();
  const auto error = failure(ExitCode::kUsage, [&] { eval_data_words(grid, run); });
  EXPECT_NE(error.message().find("grid.data: has 1 file"), std::string::npos) << error.message();
  EXPECT_NE(error.message().find("takes --src FILE --tgt FILE"), std::string::npos);
}

TEST(GridData, ThatAreMissingAreRefused) {
  GridOptions grid;
  grid.data = {"/gone.txt"};
  const auto run = imported_run("language_model");
  const auto error = failure(ExitCode::kUsage, [&] { eval_data_words(grid, run); });
  EXPECT_NE(error.message().find("no file /gone.txt"), std::string::npos) << error.message();
}

TEST(GridData, AreRelativeToTheGridFile) {
  const TempDir folder;
  const auto grid = load_grid(folder.write("grid.toml", "[grid]\ndata = [\"dev.tsv\"]\n"));
  EXPECT_EQ(grid.data, (Words{(folder / "dev.tsv").string()}));
}

}  // namespace
}  // namespace stretto::sweep
