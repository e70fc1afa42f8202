// Five systems of newstest2021 en-de against references A, C, D and all three, compared with what
// sacreBLEU gave (make_metrics_golden.py wrote the numbers). A quarter of them, in which each two
// of system, references and metric meet; with STRETTO_TESTS_FULL=1 all.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

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

/// By place in the list: eight metrics of each set of references, four sets of each system.
bool is_compared(int place) {
  const char* full = std::getenv("STRETTO_TESTS_FULL");
  if (full != nullptr && std::string(full) != "" && std::string(full) != "0") return true;
  return (place / 32 + place / 8 % 4 + place % 8) % 4 == 0;
}

TEST(MetricsNewstest, EqualSacrebleuToFourDecimals) {
  const char* shared = std::getenv("STRETTO_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "STRETTO_SHARED names no folder with data";
  const auto folder = std::filesystem::path(shared) / "data" / "wmt_newstest2021_ende";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not there";

  int place = 0;
  for (const Golden& golden : kGolden) {
    if (!is_compared(place++)) continue;
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
  }
  EXPECT_EQ(place, 5 * 4 * 8);
}

}  // namespace
}  // namespace stretto::metrics
