#include "search/watched_trial.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/child_process.h"
#include "base/descriptor.h"
#include "base/file.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::search {
namespace {

using namespace std::chrono_literals;

// It leaves as a training does that saves.
const std::string kEndlessTrial = "trap 'exit 75' INT; echo > begun; while :; do sleep 0.02; done";

/// watch_trial() in a process of its own, which writes to nobody's folder but this one's.
class Watched {
 public:
  explicit Watched(const std::string& script, std::chrono::milliseconds silence = 1h,
                   const std::vector<std::string>& variables = {}) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const Descriptor input(ends[0]);
    line_.reset(ends[1]);
    pid_ = ::fork();
    if (pid_ > 0) return;
    line_.reset();
    try {
      ::_exit(watch_trial({.words = {find_program("sh"), "-c", script},
                           .folder = folder.path(),
                           .run_directory = folder.path(),
                           .variables = variables,
                           .silence = silence},
                          input.get()));
    } catch (const std::exception&) {
      ::_exit(99);
    }
  }
  int code() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  bool runs() const { return ::waitpid(pid_, nullptr, WNOHANG) == 0; }
  void wait_until_it_began() const {
    for (int i = 0; i < 1000 && !std::filesystem::exists(folder / "begun"); ++i) {
      std::this_thread::sleep_for(10ms);
    }
  }
  void tell() { EXPECT_EQ(::write(line_.get(), "\n", 1), 1); }
  void hang_up() { line_.reset(); }
  pid_t pid() const { return pid_; }

  testing::TempDir folder;

 private:
  Descriptor line_;
  pid_t pid_ = -1;
};

TEST(WatchedTrial, EndsWithTheTrialsExitCode) {
  EXPECT_EQ(Watched("exit 7").code(), 7);
  EXPECT_EQ(Watched("kill -9 $$").code(), 137);
}

TEST(WatchedTrial, HasTheVariablesAndTheFolder) {
  Watched trial("echo $CUDA_VISIBLE_DEVICES > gpus", 1h, {"CUDA_VISIBLE_DEVICES=2,3"});
  EXPECT_EQ(trial.code(), 0);
  EXPECT_EQ(read_file(trial.folder / "gpus"), "2,3\n");
}

TEST(WatchedTrial, EndsWhenItsSearchHangsUp) {
  Watched trial(kEndlessTrial);
  trial.wait_until_it_began();
  trial.tell();
  EXPECT_TRUE(trial.runs());
  trial.hang_up();
  EXPECT_EQ(trial.code(), 75);
}

TEST(WatchedTrial, EndsWhenItsSearchFallsSilent) {
  Watched trial(kEndlessTrial, 3s);
  trial.wait_until_it_began();
  for (int i = 0; i < 45; ++i) {
    trial.tell();
    std::this_thread::sleep_for(100ms);
  }
  EXPECT_TRUE(trial.runs()) << "it heard of its search";
  EXPECT_EQ(trial.code(), 75);
}

TEST(WatchedTrial, EndsWhenItsHostEndsIt) {
  Watched trial(kEndlessTrial);
  trial.wait_until_it_began();
  ::kill(trial.pid(), SIGTERM);
  EXPECT_EQ(trial.code(), 75);
}

TEST(WatchedTrial, RefusesAHostThatDoesNotSeeTheFolders) {
  const testing::TempDir folder;
  const auto error = testing::failure(ExitCode::kUsage, [&] {
    watch_trial(
        {.words = {"/bin/true"}, .folder = folder.path(), .run_directory = folder / "trials/3"});
  });
  EXPECT_NE(error.message().find("does not see " + (folder / "trials/3").string()),
            std::string::npos);
}

// What a shell makes of the command must be the words.
TEST(WatchedTrial, ItsWordsSurviveAShell) {
  const std::vector<std::string> words{"a=b",   "it's", "",  "two words", "$HOME", "`id`",
                                       "\"x\"", "a\nb", "*", "!x",        "\\",    "ü"};
  const testing::TempDir folder;
  const auto all = remote_words(
      {"ssh", "-x"}, "node1", {"prog", "watch"},
      {.words = words, .folder = "/some where", .run_directory = "/r", .variables = {"A=1,2"}});
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0] + " " + all[1] + " " + all[2], "ssh -x node1");
  const std::string script =
      folder.write("show", "prog() { for word in \"$@\"; do printf '%s\\0' \"$word\"; done; }\n" +
                               all[3] + " > " + (folder / "out").string() + "\n");
  ChildProcess shell({find_program("sh"), script});
  ASSERT_TRUE(shell.wait_for(10s));
  std::string expected;
  for (const char* word : {"watch", "--folder=/some where", "--run=/r", "--variable=A=1,2"}) {
    expected += std::string(word) + '\0';
  }
  for (const auto& word : words) expected += "--word=" + word + '\0';
  EXPECT_EQ(read_file(folder / "out"), expected);
}

}  // namespace
}  // namespace stretto::search
