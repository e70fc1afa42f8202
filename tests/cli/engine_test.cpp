#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace stretto::testing {
namespace {

namespace fs = std::filesystem;

/// The built program beside an engine of another build.
struct MixedInstallation : Program {
  MixedInstallation() {
    const fs::path build = STRETTO_BINARY_DIR;
    fs::copy_file(build / "stretto", folder.path() / "stretto");
    fs::create_symlink(build / "libstretto_core.so", folder.path() / "libstretto_core.so");
    fs::create_symlink(build / "tests" / "other_build" / "libstretto_engine.so",
                       folder.path() / "libstretto_engine.so");
  }
};

TEST(Engine, OneOfAnotherBuildIsRefusedBeforeItsFirstCall) {
  const MixedInstallation mixed;
  mixed.write_run("");
  const auto outcome = mixed.shell("./stretto average run --last 2");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "error: " + (mixed.folder.path() / "libstretto_engine.so").string() +
                " is of another build than the program: they would misread each other\n"
                "  `./dev build` builds all of them; of an installation, copy all files anew\n");
}

// Training opens it beside its data.
TEST(Engine, OneOfAnotherBuildIsRefusedBeforeTrainingMakesAFolder) {
  const MixedInstallation mixed;
  const std::string rows = "text\tlabel\na b\tyes\nc d\tno\n";
  mixed.folder.write("train.tsv", rows);
  mixed.folder.write("valid.tsv", rows);
  mixed.folder.write("my.toml",
                     "[task]\nname = \"text_classification\"\n"
                     "[data]\ntrain = [\"train.tsv\"]\nvalid = [\"valid.tsv\"]\n"
                     "cache_dir = \"cache\"\n[tokenizer]\nvocab_size = 40\n"
                     "[model]\npreset = \"tiny\"\n[train]\nmax_steps = 5000\n");
  const auto outcome = mixed.shell("./stretto train my.toml --run run");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.err, "libstretto_engine.so is of another build than the program"))
      << outcome.err;
  EXPECT_FALSE(fs::exists(mixed.folder.path() / "run"));
  mixed.folder.write("train.tsv", "text\tlabel\na b\n");
  EXPECT_EQ(mixed.shell("./stretto train my.toml --run run").code, 65) << "its data come first";
}

TEST(Engine, OfAnotherBuildIsTheFaultOfNoKeyThatCheckNeedsItFor) {
  const MixedInstallation mixed;
  mixed.folder.write("my.toml",
                     "[data]\ntrain_src = [\"no.src\"]\ntrain_tgt = [\"no.tgt\"]\n"
                     "valid_src = [\"no.src\"]\nvalid_tgt = [\"no.tgt\"]\n"
                     "[train]\nmax_steps = 9000\n");
  const auto outcome =
      mixed.shell("./stretto check my.toml --elsewhere 'optim.groups=[\"*.bias lr_scale=0.5\"]'");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.err, "error: " + (mixed.folder.path() / "libstretto_engine.so").string() +
                                   " is of another build than the program"))
      << outcome.err;
}

TEST(Engine, TheDoctorSaysThatItIsOfAnotherBuild) {
  const MixedInstallation mixed;
  const auto outcome = mixed.shell("./stretto doctor --json");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_NE(json["engine_error"].get<std::string>().find("another build"), std::string::npos)
      << outcome.out;
}

}  // namespace
}  // namespace stretto::testing
