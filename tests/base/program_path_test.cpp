#include "base/program_path.h"

#include <gtest/gtest.h>

namespace stretto {
namespace {

namespace fs = std::filesystem;

TEST(ProgramPath, IsThatOfThisProgramAndFindsWhatLiesBesideIt) {
  const fs::path program = program_path();
  EXPECT_TRUE(fs::is_regular_file(program)) << program;
  EXPECT_EQ(find_beside_program(program.filename().c_str()), program);
  EXPECT_EQ(find_beside_program("libstretto_of_nobody.so"), fs::path());
}

}  // namespace
}  // namespace stretto
