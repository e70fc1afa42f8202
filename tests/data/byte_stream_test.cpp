#include "data/byte_stream.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::data {
namespace {

TEST(ReadWhole, TakesAllBytesUpToALimit) {
  const testing::TempDir folder;
  const std::string text = std::string(300'000, 'x') + '\0' + "end";
  const std::string path = folder.write("text", text);
  EXPECT_EQ(read_whole(*open_bytes(path), "text", text.size()), text);
  const Error error = testing::failure(
      ExitCode::kBadData, [&] { read_whole(*open_bytes(path), "text", text.size() - 1); });
  EXPECT_EQ(std::string(error.what()).rfind("text: more than ", 0), 0) << error.what();
}

}  // namespace
}  // namespace stretto::data
