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
