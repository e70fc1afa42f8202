#include "dist/child_process.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace stretto::dist {
namespace {

using namespace std::chrono_literals;

TEST(ChildProcess, ItsStderrComesAsItIsWritten) {
  ChildProcess child({find_program("sh"), "-c", "printf one >&2; sleep 0.3; echo two >&2; exit 3"},
                     ChildProcess::Stderr::kPiped);
  std::vector<std::string> pieces;
  for (int i = 0; i < 200 && (pieces.size() < 2 || !child.poll()); ++i) {
    if (auto piece = child.read_stderr(20ms); !piece.empty()) pieces.push_back(piece);
  }
  EXPECT_EQ(pieces, (std::vector<std::string>{"one", "two\n"}));
  EXPECT_EQ(child.poll(), 3);
}

}  // namespace
}  // namespace stretto::dist
