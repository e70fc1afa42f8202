// Five systems of newstest2021 en-de against references A, C, D and all three, compared with what
// sacreBLEU gave (make_metrics_golden.py wrote the numbers).
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "metrics/scorers.h"

namespace stretto::metrics {
namespace {

struct Golden {
  const char* system;
  const char* references;  ///< one letter for each set
  const char* metric;
  const char* tokenize;
  bool lowercase;
  double score;
  const char* verbose;
};

const Golden kGolden[] = {
#include "metrics_newstest_golden.inc"
};

using Lines = std::vector<std::string>;

Lines read_lines(const std::filesystem::path& path) {
  std::ifstream file(path);
  Lines lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

TEST(MetricsNewstest, EqualSacrebleuToFourDecimals) {
  const char* shared = std::getenv("STRETTO_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "STRETTO_SHARED names no folder with data";
  const auto folder = std::filesystem::path(shared) / "data" / "wmt_newstest2021_ende";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not there";

  int compared = 0;
  for (const Golden& golden : kGolden) {
    SCOPED_TRACE(std::string(golden.system) + " " + golden.references + " " + golden.metric + " " +
                 golden.tokenize + (golden.lowercase ? " lower-cased" : ""));
    std::vector<Lines> references;
    for (const char* name = golden.references; *name != '\0'; ++name) {
      references.push_back(
          read_lines(folder / (std::string("newstest2021.en-de.ref.") + *name + ".de")));
    }
    const Lines hypotheses =
        read_lines(folder / (std::string("newstest2021.en-de.hyp.") + golden.system + ".de"));
    ASSERT_FALSE(hypotheses.empty());
    const Score score = compute(
        {.metric = golden.metric, .tokenize = golden.tokenize, .lowercase = golden.lowercase},
        hypotheses, references);
    EXPECT_NEAR(score.score, golden.score, 2e-6);
    EXPECT_EQ(score.verbose, golden.verbose);
    ++compared;
  }
  EXPECT_EQ(compared, 5 * 4 * 8);
}

}  // namespace
}  // namespace stretto::metrics
