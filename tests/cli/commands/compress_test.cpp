// What `compress` and `bench` refuse before they open the engine.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/cli/program.h"

namespace stretto::cli {
namespace {

using stretto::testing::has;
using stretto::testing::Program;

struct RefusedWords {
  std::vector<std::string> words;
  std::string said;
};

TEST(CompressCommand, RefusesWordsThatDoNotGoTogether) {
  const Program program;
  const std::vector<RefusedWords> cases{
      {{"compress", "run"}, "--run is missing"},
      {{"compress", "run", "--run", "out"}, "nothing is asked for"},
      {{"compress", "run", "other", "--bits", "8", "--run", "out"}, "several runs need --grid"},
      {{"compress", "run", "--remove-units", "0.5", "--bits", "8", "--run", "out"},
       "before it is rounded"},
      {{"compress", "run", "--bits", "8", "--importance-batches", "4", "--run", "out"},
       "--importance-batches goes with --remove"},
      {{"compress", "run", "train.max_steps=3", "--bits", "8", "--run", "out"},
       "takes no key=value"},
      {{"compress", "run", "--bits", "5", "--run", "out"}, "--bits"},
      {{"compress", "run", "--bits", "8", "--group", "0", "--run", "out"}, "--group"},
      {{"compress", "run", "--bits", "8", "--group", "8", "--per-tensor", "--run", "out"},
       "--group and --per-tensor exclude each other"},
      {{"compress", "run", "--prune", "0.5", "--asymmetric", "--run", "out"}, "need --bits"},
      {{"compress", "run", "--bits", "8", "--bits-of", "embed*", "--run", "out"}, "names no bits"},
      {{"compress", "run", "--bits", "8", "--bits-of", "embed*=5", "--run", "out"}, "5 bits"},
      {{"compress", "run", "--bits", "4", "--calibrate", "data.valid=a.tsv", "--run", "out"},
       "--calibrate goes with --rounding calibrated"},
      {{"compress", "run", "bits=8", "--run", "out"}, "takes no key=value"},
      {{"compress", "run", "--prune", "0.5", "--rounding", "calibrated", "--run", "out"},
       "need --bits"},
      {{"compress", "run", "--bits", "8", "--prune-scope", "layer", "--run", "out"},
       "--prune-scope goes with --prune"},
      {{"compress", "run", "--remove-units", "0.5", "--keep", "a*", "--run", "out"},
       "--keep goes with --bits and --prune"},
      {{"compress", "run", "--prune", "1.5", "--run", "out"}, "--prune"},
      {{"compress", "run", "--bits", "8", "--run", "out"}, "no run folder at run"},
      {{"compress", "run", "--grid", "grid.toml"}, "--dir is missing"},
      {{"compress", "run", "--grid", "grid.toml", "--dir", "d", "--bits", "8"},
       "stands in the file of --grid"},
      {{"compress", "run", "--grid", "grid.toml", "--dir", "d", "--prune-scope", "global"},
       "stands in the file of --grid"},
      {{"compress", "run", "--bits", "8", "--dir", "d"}, "--dir goes with --grid"},
      {{"bench", "run", "--precision", "int5"}, "there is no precision `int5`"},
      {{"bench", "run"}, "no run folder at run"},
      {{"bench", "none.toml"}, "no configuration file none.toml"},
  };
  for (const auto& one : cases) {
    const auto result = program.run(one.words);
    EXPECT_EQ(result.code, 2) << one.said << ": " << result.err;
    EXPECT_TRUE(has(result.err, one.said)) << one.said << ": " << result.err;
  }
}

TEST(CompressCommand, RefusesAGridThatAsksForNothing) {
  const Program program;
  program.folder.write("grid.toml", "[grid]\nbits = [32]\n");
  const auto result = program.run({"compress", "run", "--grid", "grid.toml", "--dir", "d"});
  EXPECT_EQ(result.code, 2);
  EXPECT_TRUE(has(result.err, "asks for nothing")) << result.err;
}

}  // namespace
}  // namespace stretto::cli
