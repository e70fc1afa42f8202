#include "distributed/watch/join_watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace stretto::distributed {
namespace {

namespace fs = std::filesystem;

/// A folder that looks like /proc.
class FakeProc {
 public:
  FakeProc() : folder_(fs::temp_directory_path() / ("proc_" + std::to_string(::getpid()))) {}
  ~FakeProc() { fs::remove_all(folder_); }
  const fs::path& path() const { return folder_; }
  void add(const std::string& pid, const std::string& environ, const std::string& state) const {
    fs::create_directories(folder_ / pid);
    std::ofstream(folder_ / pid / "environ", std::ios::binary) << environ;
    std::ofstream(folder_ / pid / "stat") << pid << " (a) T name) " << state << " 1 1";
  }

 private:
  fs::path folder_;
};

std::string environment(const std::string& job, const std::string& rank) {
  using std::string_literals::operator""s;
  return "HOME=/\0"s + "PMIX_NAMESPACE=" + job + '\0' + "PMIX_RANK=" + rank + '\0';
}

TEST(JoinWatch, NamesRanksThatAreStoppedOrNotThere) {
  const FakeProc proc;
  proc.add("10", environment("job", "0"), "S");
  proc.add("11", environment("job", "1"), "T");
  proc.add("12", environment("job", "1"), "S");  // a shell around it
  proc.add("13", environment("other job", "2"), "S");
  proc.add("14", "PMIX_NAMESPACE_OF=job", "T");
  proc.add("self", environment("job", "2"), "S");
  EXPECT_EQ(ranks_that_are_missing(proc.path(), "job", 4),
            "rank 1 (pid 11) is stopped; ranks 2, 3 are not seen on this host");
  proc.add("11", environment("job", "1"), "R");
  EXPECT_EQ(ranks_that_are_missing(proc.path(), "job", 2), "all are there, and none is stopped");
  EXPECT_EQ(ranks_that_are_missing(proc.path(), "", 4), "");
}

}  // namespace
}  // namespace stretto::distributed
