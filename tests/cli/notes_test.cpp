#include "cli/notes.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace stretto::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNote = "`data.max_sentences` is now `data.max_samples`; it is still read\n";

/// The built program without an engine beside it, and a configuration with a former name whose text
/// is elsewhere.
struct FormerName : Program {
  FormerName() {
    const fs::path build = STRETTO_BINARY_DIR;
    fs::copy_file(build / "stretto", folder.path() / "stretto");
    fs::create_symlink(build / "libstretto_core.so", folder.path() / "libstretto_core.so");
    folder.write("my.toml",
                 "[data]\ntrain_src = [\"a.src\"]\ntrain_tgt = [\"a.tgt\"]\nmax_sentences = 64\n"
                 "[train]\nmax_steps = 9000\n");
  }
};

TEST(Notes, AreListedByCheckOnStdout) {
  const auto outcome = FormerName().shell("./stretto check my.toml --elsewhere");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, std::string("note: my.toml:4:1: ") + kNote)) << outcome.out;
  EXPECT_EQ(outcome.err, "");
}

TEST(Notes, AreAListOfTheJsonOfCheck) {
  const auto outcome = FormerName().shell("./stretto check my.toml --elsewhere --json");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const auto json = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(json["former"].size(), 1u);
  EXPECT_EQ(json["former"][0]["place"], "my.toml:4:1");
  EXPECT_EQ(json["former"][0]["what"].get<std::string>() + "\n", kNote);
}

TEST(Notes, StandOnStderrBesideAResolvedCopy) {
  const FormerName lab;
  const auto outcome = lab.shell("./stretto check my.toml --elsewhere --resolved");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, std::string("warning: my.toml:4:1: ") + kNote);
  EXPECT_TRUE(has(outcome.out, "max_samples = 64 ")) << outcome.out;
  EXPECT_FALSE(has(outcome.out, "is now")) << outcome.out;
}

TEST(Notes, AreToldOnceByTraining) {
  const FormerName lab;
  for (const char* name : {"a.src", "a.tgt"}) lab.folder.write(name, "one line\n");
  const auto outcome = lab.shell("./stretto train my.toml data.max_sentences=32");
  EXPECT_EQ(outcome.code, 2) << "there is no engine";
  EXPECT_EQ(outcome.err.rfind(std::string("warning: my.toml:4:1: ") + kNote, 0), 0u) << outcome.err;
  EXPECT_EQ(outcome.err.find("is now"), outcome.err.rfind("is now")) << outcome.err;
}

TEST(Notes, KeysThatNothingReadsAreToldByTraining) {
  const FormerName lab;
  for (const char* name : {"a.src", "a.tgt"}) lab.folder.write(name, "one line\n");
  const auto outcome = lab.shell("./stretto train my.toml optim.nesterov=true");
  EXPECT_EQ(outcome.code, 2) << "there is no engine";
  EXPECT_TRUE(has(outcome.err,
                  "warning: command line, `optim.nesterov=true`: `optim.nesterov`: "
                  "nothing reads it with optim.name = adam; leave it out"))
      << outcome.err;
}

TEST(Notes, OfARunFolderAreOnOverridesAlone) {
  const FormerName lab;
  std::string toml = lab.shell("./stretto check my.toml --elsewhere --resolved").out;
  const std::string now = "\nmax_samples = 64 ";
  ASSERT_NE(toml.find(now), std::string::npos) << toml;
  toml.replace(toml.find(now), now.size(), "\nmax_sentences = 64 ");
  lab.write_run(toml);
  const auto outcome = lab.shell("./stretto eval run");
  EXPECT_TRUE(has(outcome.err, "libstretto_engine.so is not beside the program")) << outcome.err;
  EXPECT_FALSE(has(outcome.err, "is now")) << outcome.err;
}

}  // namespace
}  // namespace stretto::testing
