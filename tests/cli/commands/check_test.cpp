#include <gtest/gtest.h>

#include <algorithm>

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
  const std::string why = "there is no libstretto_engine.so on this machine";
  auto outcome = lab.check(std::string("--elsewhere ") + kGroups);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "; `optim.groups`: " + why)) << outcome.out;
  outcome = lab.check("--elsewhere 'optim.no_decay=[\"*.bais\"]'");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "; `optim.no_decay`: " + why)) << outcome.out;
}

TEST(CheckWithoutEngine, SaysItOfEveryKeyWithPatternsInOneLineBelow) {
  const auto outcome =
      WithoutEngine().check(std::string("--elsewhere 'train.freeze=[\"encodr.*\"]' ") + kGroups);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const size_t verdict = outcome.out.find("my.toml: no errors in what was looked at");
  const size_t line = outcome.out.find("not looked at: ");
  ASSERT_NE(verdict, std::string::npos) << outcome.out;
  EXPECT_LT(verdict, line) << outcome.out;
  const std::string told = outcome.out.substr(line);
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << told;
  for (const char* key : {"optim.groups", "train.freeze"}) {
    EXPECT_TRUE(
        has(told, std::string("`") + key + "`: there is no libstretto_engine.so on this machine; "))
        << outcome.out;
  }
}

TEST(CheckWithoutEngine, NamesAllThatWaitsForASoundModel) {
  const WithoutEngine lab;
  const std::string words = std::string(" --elsewhere 'train.freeze=[\"encodr.*\"]' ") + kGroups;
  const std::string waiting = "not compared until the model has no errors: ";
  auto outcome = lab.check("model.d_model=7 train.init_from=." + words);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.out, waiting)) << outcome.out;
  for (const char* key : {"`optim.groups`", "`train.freeze`", "`train.init_from`"}) {
    EXPECT_TRUE(has(outcome.out, key)) << outcome.out;
  }
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1) << outcome.out;
  outcome = lab.check("model.d_model=7" + words);
  EXPECT_TRUE(has(outcome.out, waiting)) << outcome.out;
  EXPECT_FALSE(has(outcome.out, "train.init_from")) << outcome.out;
}

// A recipe that trains its tokenizer leaves something for --full; beside an error nobody asks.
TEST(CheckWithoutEngine, ErrorsComeFirstAndWhatWasNotLookedAtWaits) {
  const WithoutEngine lab;
  lab.folder.write("bare.tsv", "red\tno\nblue\tyes\ngreen\tno\n");
  lab.folder.write("my.toml",
                   "[task]\nname = \"text_classification\"\n[data]\ntrain = [\"bare.tsv\"]\n"
                   "text = \"1\"\nlabel = \"2\"\n[train]\nmax_steps = 9000\n");
  auto outcome = lab.check("");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_LT(outcome.out.find("my.toml: no errors in what was looked at"),
            outcome.out.find("not looked at: `tokenizer.vocab_size`: "))
      << outcome.out;
  EXPECT_TRUE(outcome.out.ends_with("; --full looks at all that is on this machine\n"))
      << outcome.out;
  outcome = lab.shell("./stretto check my.toml optim.lrr=1 2>&1");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(outcome.out.starts_with("error: command line, `optim.lrr=1`: ")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "\nnote: my.toml:4:1: ")) << outcome.out;
  EXPECT_FALSE(has(outcome.out, "not looked at")) << outcome.out;
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
