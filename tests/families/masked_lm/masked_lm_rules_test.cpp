#include "families/masked_lm/masked_lm_rules.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "experiment/preflight.h"
#include "experiment/rules.h"
#include "families/masked_lm/masked_lm_options.h"
#include "tests/base/temp_dir.h"

namespace stretto::experiment {
namespace {

class MaskedLmRulesTest : public ::testing::Test {
 protected:
  /// A sound experiment whose text is in files of these names.
  Experiment experiment_of(const std::string& train, const std::string& valid) const {
    Experiment e;
    e.task.select("masked_lm");
    auto& data = e.task.as<MaskedLmOptions>().data;
    data.train = {folder_.write(train, "{\"text\": \"a b\"}\n")};
    data.valid = {folder_.write(valid, "{\"text\": \"a b\"}\n")};
    e.train.max_steps = 100;
    e.schedule.warmup_steps = 10;
    return e;
  }

  testing::TempDir folder_;
};

/// What training would stop at, as "key: what".
std::vector<std::string> stops_of(const Experiment& experiment) {
  std::vector<std::string> found;
  for (const auto& stop : preflight(experiment, {}, {}).stops) {
    found.push_back(stop.key + ": " + stop.what);
  }
  return found;
}

TEST_F(MaskedLmRulesTest, PlainTextIsRead) {
  EXPECT_EQ(stops_of(experiment_of("a.txt", "b.text")), std::vector<std::string>{});
}

TEST_F(MaskedLmRulesTest, JsonLinesAreNoPlainText) {
  const auto found = stops_of(experiment_of("a.jsonl", "b.ndjson"));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0], "data.train: " + (folder_ / "a.jsonl").string() +
                          " is called like JSON lines, and masked_lm reads plain text");
  EXPECT_EQ(found[1].substr(0, 12), "data.valid: ");
}

TEST_F(MaskedLmRulesTest, ARunThatReadsThemAlreadyBreaksNoRule) {
  std::vector<config::Problem> problems;
  check_rules(experiment_of("a.jsonl", "b.ndjson"), {}, problems);
  EXPECT_TRUE(problems.empty());
}

}  // namespace
}  // namespace stretto::experiment
