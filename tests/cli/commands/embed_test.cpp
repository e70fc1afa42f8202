#include <gtest/gtest.h>

#include "tests/cli/program.h"
#include "tests/search/bench.h"

namespace stretto::cli {
namespace {

using stretto::testing::expect_in;
using stretto::testing::Program;
using stretto::testing::SearchBench;

class EmbedCommand : public ::testing::Test {
 protected:
  void refuses(const std::vector<std::string>& words, const std::string& said, int code = 2) const {
    const auto result = program_.run(words);
    EXPECT_EQ(result.code, code) << result.err;
    expect_in(said, result.err);
    EXPECT_EQ(result.out, "");
  }

  Program program_;
  SearchBench bench_;
};

TEST_F(EmbedCommand, RefusesARunWhoseModelHasNoVectorsOfLines) {
  program_.write_run(program_.run({"check", bench_.config, "--resolved"}).out);
  refuses({"embed", "run"}, "run is a run of translation, whose model gives no vectors");
}

TEST_F(EmbedCommand, RefusesWhatIsNotThere) {
  refuses({"embed", "nowhere"}, "no run folder at nowhere");
  refuses({"embed", "run", "no_such_file.txt"}, "no file no_such_file.txt");
  refuses({"embed", "run", "--output", "vectors.txt"}, "not a .npy file");
  refuses({"embed", "nowhere", "--output", "/dev/stdout"}, "no run folder at nowhere");
  refuses({"embed", "run", "--output", "nowhere/vectors.npy"}, "no folder nowhere", 74);
  refuses({"embed", "run", "--pooling", "max"}, "mean");
  refuses({"embed", "run", "--max-tokens", "2"}, "--max-tokens");
}

TEST_F(EmbedCommand, AndInferAreNoProcessesOfAJob) {
  for (const char* command : {"embed", "infer"}) {
    const auto result =
        program_.shell("OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 " +
                       stretto::testing::shell_quoted(Program::path()) + " " + command + " run");
    EXPECT_EQ(result.code, 2);
    expect_in(std::string("stretto ") + command + " is one process", result.err);
    expect_in("start it once for each part", result.err);
    EXPECT_EQ(result.err.find("translation"), std::string::npos) << "the run may be any family's";
  }
}

}  // namespace
}  // namespace stretto::cli
