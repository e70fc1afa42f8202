#include "runs/provenance.h"

#include <gtest/gtest.h>

#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::runs {
namespace {

TEST(RequireListedFiles, NamesAFileOfTheRunThatIsGone) {
  const testing::TempDir dir;
  dir.write("run/run.json", "{}");
  dir.write("run/tokenizer/tokenizer.json", "{}");
  dir.write("run/tokenizer/facts.json", "{}");
  store::LoadedCheckpoint checkpoint;
  checkpoint.directory = dir / "run/checkpoints/step_00000001";
  EXPECT_NO_THROW(require_listed_files(checkpoint)) << "early checkpoints list nothing";
  checkpoint.provenance.tokenizer = {{"facts.json", "2222"}, {"tokenizer.json", "1111"}};
  EXPECT_NO_THROW(require_listed_files(checkpoint));
  std::filesystem::remove(dir / "run/tokenizer/facts.json");
  // For another run with the same tokenizer it is no difference.
  EXPECT_EQ(tokenizer_difference(checkpoint, {{"tokenizer.json", "1111"}}), "");
  const Error error = testing::failure(ExitCode::kBadData, [&] {
    require_same_tokenizer(checkpoint, {{"tokenizer.json", "1111"}}, dir / "run/tokenizer");
  });
  for (const char* part : {"run/tokenizer/facts.json: is missing", "step_00000001/manifest.json",
                           "copy of the run folder", "2222"}) {
    EXPECT_NE(error.message().find(part), std::string::npos) << error.message();
  }
  checkpoint.directory = dir / "elsewhere/step_00000001";
  EXPECT_NO_THROW(require_listed_files(checkpoint)) << "there is no run folder around it";
}

}  // namespace
}  // namespace stretto::runs
