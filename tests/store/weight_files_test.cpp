#include "store/weight_files.h"

#include <gtest/gtest.h>

#include "tests/base/temp_dir.h"

namespace stretto::store {
namespace {

using stretto::testing::TempDir;

TEST(ImportAdvice, NamesTheCommandForAModelFolderAlone) {
  const TempDir dir;
  EXPECT_EQ(import_advice(dir / "nowhere"), "");
  EXPECT_EQ(import_advice(dir.path()), "");
  const std::vector<std::string> others{"",           "{",      "[]",         "\"model_type\"",
                                        "{\"a\": 1}", "\xff{}", "{\"a\":1}{}"};
  for (const std::string& other : others) {
    dir.write("config.json", other);
    EXPECT_EQ(import_advice(dir.path()), "") << other;
  }
  dir.write("config.json", "{\"model_type\": \"bert\", \"id2label\": {\"0\": \"no\"}}");
  EXPECT_NE(import_advice(dir.path()).find("stretto import " + dir.path().string() + " --run RUN"),
            std::string::npos)
      << import_advice(dir.path());
}

}  // namespace
}  // namespace stretto::store
