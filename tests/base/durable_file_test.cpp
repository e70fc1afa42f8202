#include "base/durable_file.h"

#include <gtest/gtest.h>

#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

// What the system has is less, or more, than what was written to it: neither may pass for whole.
TEST(DurableFile, NoticesWhenTheSystemHasAnotherSizeThanWasWritten) {
  const testing::TempDir folder;
  for (const uintmax_t size : {uintmax_t{3}, uintmax_t{9}}) {
    const fs::path path = folder.path() / std::to_string(size);
    DurableFile file(path, "test");
    file.write("whole");
    EXPECT_EQ(file.size(), 5u);
    fs::resize_file(path, size);
    const Error error = testing::failure(ExitCode::kIo, [&] { file.close(); });
    EXPECT_NE(std::string(error.what()).find("lost bytes of"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace stretto
