#include "families/masked_lm/masked_lm_rules.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "experiment/rules.h"
#include "families/masked_lm/masked_lm_options.h"

namespace stretto::experiment {
namespace {

/// Problems of a sound experiment whose text is in these files, as "key: what".
std::vector<std::string> masked_problems(const std::string& train, const std::string& valid) {
  Experiment e;
  e.task.select("masked_lm");
  auto& data = e.task.as<MaskedLmOptions>().data;
  data.train = {train};
  data.valid = {valid};
  e.train.max_steps = 100;
  e.schedule.warmup_steps = 10;
  std::vector<config::Problem> problems;
  check_rules(e, {}, problems);
  std::vector<std::string> found;
  for (const auto& problem : problems) found.push_back(problem.key + ": " + problem.what);
  return found;
}

TEST(MaskedLmRules, PlainTextBreaksNone) {
  EXPECT_EQ(masked_problems("/a.txt", "/b.txt.gz"), std::vector<std::string>{});
}

TEST(MaskedLmRules, JsonLinesAreNoPlainText) {
  const auto found = masked_problems("/a.jsonl.gz", "/b.ndjson");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0],
            "data.train: /a.jsonl.gz is called like JSON lines, and masked_lm reads plain text");
  EXPECT_EQ(found[1].substr(0, 22), "data.valid: /b.ndjson ");
}

}  // namespace
}  // namespace stretto::experiment
