#include <gtest/gtest.h>

#include "tests/cli/program.h"
#include "tests/search/bench.h"

namespace stretto::cli {
namespace {

using stretto::testing::expect_in;
using stretto::testing::Program;
using stretto::testing::SearchBench;

class Distill : public ::testing::Test {
 protected:
  void refuses(const std::string& teacher, const std::vector<std::string>& more,
               const std::string& said) const {
    std::vector<std::string> words{"distill", teacher, "--student", bench_.config, "--run", "out"};
    words.insert(words.end(), more.begin(), more.end());
    const auto result = program_.run(words);
    EXPECT_EQ(result.code, 2) << result.err;
    expect_in(said, result.err);
    EXPECT_FALSE(std::filesystem::exists(program_.folder / "out"));
  }

  Program program_;
  SearchBench bench_;
};

TEST_F(Distill, RefusesATeacherThatIsNoRunAndWrongKeys) {
  refuses("nowhere", {}, "nowhere");
  program_.write_run("");
  refuses("run", {"optim.lrr=1"}, "did you mean `optim.lr`?");
  refuses("run", {"--level", "paragraph"}, "--level");
  refuses("run", {"--bits", "5"}, "--bits");
  program_.write_run("[task]\nname = \"translation\"\n[train]\nmax_steps = 9000\n");
  refuses("run", {"--level", "word", "--text", "more.en"}, "labels no text with --level word");
  for (const char* option : {"--keep-own", "--no-shortlist", "--labels=l", "--processes=2",
                             "--teacher-key=decode.beam_size=2"}) {
    refuses("run", {"--level", "word", option}, "labels no text with --level word");
  }
}

TEST_F(Distill, RefusesAFolderThatIsAnotherRunBeforeItLabels) {
  program_.write_run("[task]\nname = \"translation\"\n[train]\nmax_steps = 9000\n");
  const auto result = program_.run({"distill", "run", "--student", bench_.config, "--run", "run"});
  EXPECT_EQ(result.code, 2) << result.err;
  expect_in("is the teacher's folder", result.err);
  program_.folder.write("old/config.toml", "");
  const auto other = program_.run({"distill", "run", "--student", bench_.config, "--run", "old"});
  EXPECT_EQ(other.code, 2) << other.err;
  expect_in("old holds a run, and old/labels no labels", other.err);
  EXPECT_FALSE(std::filesystem::exists(program_.folder / "old/labels"));
}

TEST_F(Distill, RefusesAnotherTaskAndOtherLanguages) {
  program_.write_run("[task]\nname = \"masked_lm\"\n[train]\nmax_steps = 9000\n");
  refuses("run", {}, "run is a model of masked_lm, and the student one of translation");
  program_.write_run(
      "[task]\nname = \"translation\"\ntgt_lang = \"French\"\n[train]\nmax_steps = 9000\n");
  refuses("run", {"task.tgt_lang=German"},
          "task.tgt_lang is \"French\" of the teacher and \"German\" of the student");
}

TEST_F(Distill, IsNoProcessOfAJob) {
  const auto result = program_.shell("OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 " +
                                     stretto::testing::shell_quoted(Program::path()) +
                                     " distill run --student my.toml --run out");
  EXPECT_EQ(result.code, 2);
  expect_in("stretto distill starts the processes that it needs", result.err);
}

}  // namespace
}  // namespace stretto::cli
