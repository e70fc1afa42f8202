#include <gtest/gtest.h>

#include "search/load_search.h"
#include "tests/base/temp_dir.h"

namespace stretto::search {
namespace {

namespace fs = std::filesystem;

// Without the text that the build makes: files of the same names stand for it.
TEST(SmokeSearch, IsSoundAndMakesSoundPoints) {
  const testing::TempDir folder;
  fs::copy(fs::path(STRETTO_SOURCE_DIR) / "configs", folder / "configs",
           fs::copy_options::recursive);
  for (const char* split : {"train", "valid", "test"}) {
    for (const char* language : {"en", "fr"}) {
      folder.write(std::string("build/phrasebook/") + split + "." + language, "a\n");
    }
  }
  const auto plan = load_search(folder / "configs/smoke/search.toml").plan;
  EXPECT_EQ(plan.max_steps, 54);
  EXPECT_TRUE(plan.options.search.deterministic);
  for (uint64_t trial = 0; trial < 20; ++trial) {
    EXPECT_NO_THROW(experiment_of(plan, plan.space.draw(1, trial, 0)));
  }
  const auto scheduler = make_scheduler(plan.options.method, plan.options.search.max_trials, 54);
  EXPECT_EQ(scheduler->plan(),
            (std::vector<std::string>{"bracket 0: 9 trials, rungs at 6, 18, 54 updates"}));
}

}  // namespace
}  // namespace stretto::search
