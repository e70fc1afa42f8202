#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace stretto::testing {
namespace {

namespace fs = std::filesystem;

/// The built program without an engine beside it, and a configuration whose text is elsewhere.
struct WithoutEngine : Program {
  WithoutEngine() {
    const fs::path build = STRETTO_BINARY_DIR;
    fs::copy_file(build / "stretto", folder.path() / "stretto");
    fs::create_symlink(build / "libstretto_core.so", folder.path() / "libstretto_core.so");
    folder.write("my.toml",
                 "[data]\ntrain_src = [\"no.src\"]\ntrain_tgt = [\"no.tgt\"]\n"
                 "valid_src = [\"no.src\"]\nvalid_tgt = [\"no.tgt\"]\n[train]\nmax_steps = 9000\n");
  }

  ProgramResult check(const std::string& words) const {
    return shell("./stretto check my.toml " + words);
  }
};

constexpr const char* kGroups = "'optim.groups=[\"encodr.* lr_scale=0.5\"]'";

TEST(CheckWithoutEngine, LooksAtEverythingWhereNoTensorIsNamed) {
  const auto outcome = WithoutEngine().check("--elsewhere");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_FALSE(has(outcome.out, "libstretto_engine")) << outcome.out;
}

TEST(CheckWithoutEngine, SaysElsewhereThatPatternsWereNotLookedAt) {
  const WithoutEngine lab;
  const std::string why = "there is no libstretto_engine.so on this machine\n";
  auto outcome = lab.check(std::string("--elsewhere ") + kGroups);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "not looked at: `optim.groups`: " + why)) << outcome.out;
  outcome = lab.check("--elsewhere 'optim.no_decay=[\"*.bais\"]'");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "not looked at: `optim.no_decay`: " + why)) << outcome.out;
}

TEST(CheckWithoutEngine, SaysItOfEveryKeyWithPatterns) {
  const auto outcome =
      WithoutEngine().check(std::string("--elsewhere 'train.freeze=[\"encodr.*\"]' ") + kGroups);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* key : {"optim.groups", "train.freeze"}) {
    EXPECT_TRUE(has(outcome.out, std::string("not looked at: `") + key +
                                     "`: there is no libstretto_engine.so on this machine\n"))
        << outcome.out;
  }
}

TEST(CheckWithoutEngine, NamesAllThatWaitsForASoundModel) {
  const WithoutEngine lab;
  const std::string words = std::string(" --elsewhere 'train.freeze=[\"encodr.*\"]' ") + kGroups;
  const std::string from = "not looked at: `train.init_from`: ";
  const std::string weights = from + "weights, until the model has no errors\n";
  auto outcome = lab.check("model.d_model=7 train.init_from=." + words);
  EXPECT_EQ(outcome.code, 2);
  for (const char* key : {"optim.groups", "train.freeze"}) {
    EXPECT_TRUE(has(outcome.out, std::string("not looked at: `") + key +
                                     "`: patterns of tensors, until the model has no errors\n"))
        << outcome.out;
  }
  EXPECT_TRUE(has(outcome.out, weights)) << outcome.out;
  outcome = lab.check("model.d_model=7 train.init_from=no_run" + words);
  EXPECT_TRUE(has(outcome.out, from + "no file ")) << outcome.out;
  EXPECT_FALSE(has(outcome.out, weights)) << outcome.out << "once is enough";
  outcome = lab.check("model.d_model=7" + words);
  EXPECT_FALSE(has(outcome.out, from)) << outcome.out;
}

TEST(CheckWithoutEngine, IsToldWhatTrainingHereWouldSayOfPatterns) {
  const auto outcome = WithoutEngine().check(kGroups);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.err, "error: libstretto_engine.so is not beside the program"))
      << outcome.err;
}

TEST(CheckWithoutEngine, NotesAHeaderThatLooksLikeASample) {
  const WithoutEngine lab;
  lab.folder.write("bare.tsv", "red\tno\nblue\tyes\ngreen\tno\n");
  lab.folder.write("my.toml",
                   "[task]\nname = \"text_classification\"\n[data]\ntrain = [\"bare.tsv\"]\n"
                   "text = \"1\"\nlabel = \"2\"\n[train]\nmax_steps = 9000\n");
  const std::string what = "bare.tsv:1 looks like a sample, not like a header, and is not read";
  auto outcome = lab.check("");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "note: my.toml:4:1: `data.train`: ")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, what + "\n  data.header = false reads it")) << outcome.out;
  outcome = lab.check("--json");
  EXPECT_TRUE(has(outcome.out, "\"doubts\":[{\"place\":\"my.toml:4:1: `data.train`\""))
      << outcome.out;
  EXPECT_TRUE(has(lab.check("data.header=false --json").out, "\"doubts\":[],"));
}

}  // namespace
}  // namespace stretto::testing
