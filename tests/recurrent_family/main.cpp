// The tests of commands on the recurrent family, or one of these commands in a process of its own
// (tests/runs/carry_test.py):
//
//   recurrent_family_tests train RECIPE --run DIR [KEY=VALUE…]
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "distributed/make_group.h"
#include "engine/commands.h"
#include "tests/recurrent_family/recurrent_family.h"

namespace stretto {
namespace {

int train_here(const std::vector<std::string>& words) {
  try {
    tasks::add_recurrent_family();
    const std::vector<std::string> overrides(words.begin() + 4, words.end());
    return distributed::leave(
        engine::run_train({.experiment = experiment::load_experiment(words[1], overrides),
                           .run_directory = words[3]}));
  } catch (const Error& error) {
    log::error(error.message());
    return distributed::leave(static_cast<int>(error.code()), error.message());
  }
}

}  // namespace
}  // namespace stretto

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() >= 4 && words[0] == "train" && words[2] == "--run")
    return stretto::train_here(words);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
