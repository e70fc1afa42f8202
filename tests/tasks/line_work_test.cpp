#include "tasks/line_work.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <streambuf>
#include <thread>

#include "tests/base/failure.h"
#include "tests/base/standard_output.h"
#include "tests/base/temp_dir.h"
#include "tests/kernels/scopes.h"

namespace stretto::tasks {
namespace {

struct PlayedLine : WorkLine {
  std::string answer = {};
  bool is_finite = true;
};

/// Answers a line with its text in brackets. A line "bad" has a problem, "none" needs no model, and
/// the answer to "inf" is not finite.
class PlayedFamily : public LineFamily<PlayedLine> {
 public:
  void prepare(PlayedLine& line) const override {
    EXPECT_TRUE(line.input.problem.empty()) << line.input.problem;
    if (line.input.text == "bad") line.input.problem = "a bad word";
    line.num_tokens = std::ssize(line.input.text);
    if (line.num_tokens > 10) line.cut_tokens = line.num_tokens - 10;
    if (line.input.text == "odd") line.note = "an odd word";
  }
  void arrange(std::span<PlayedLine> window) override { windows.push_back(window.size()); }
  int64_t cost(const PlayedLine& line) const override {
    return line.input.text == "none" ? 0 : line.num_tokens + 1;
  }
  void run(std::span<PlayedLine* const> batch, const std::function<void()>& beat) const override {
    EXPECT_FALSE(at::GradMode::is_enabled());
    beat();
    std::vector<int64_t> numbers;
    for (PlayedLine* line : batch) {
      line->answer = "[" + line->input.text + "]";
      line->is_finite = line->input.text != "inf";
      numbers.push_back(line->number);
    }
    const std::scoped_lock guard(lock_);
    batches.push_back(std::move(numbers));
  }
  bool is_finite(const PlayedLine& line) const override {
    EXPECT_FALSE(line.answer.empty()) << "asked of a line that was not run";
    return line.is_finite;
  }
  void write(std::span<const PlayedLine> lines) override {
    for (const PlayedLine& line : lines) std::cout << line.answer << "\n";
  }
  void finish() override { ++num_finished; }
  std::string counts() const override { return "3 words"; }

  std::vector<size_t> windows;
  mutable std::vector<std::vector<int64_t>> batches;
  int num_finished = 0;

 private:
  mutable std::mutex lock_;
};

/// Lines of a list; those before `pause` have come, the others have not. Fails at its end if asked.
class PlayedSource : public LineSource<PlayedLine> {
 public:
  explicit PlayedSource(std::vector<std::string> lines, size_t pause = 0, bool fails = false)
      : lines_(std::move(lines)), pause_(pause), fails_(fails) {}
  bool next(PlayedLine& line) override {
    if (next_ == lines_.size() && fails_) {
      throw Error(ExitCode::kBadData, "the file ends too early", "copy it again");
    }
    if (next_ == lines_.size()) return false;
    line.input = {
        .place = "played:" + std::to_string(next_ + 1), .text = lines_[next_], .problem = ""};
    ++next_;
    return true;
  }
  bool ready() override { return next_ != pause_; }

 private:
  const std::vector<std::string> lines_;
  const size_t pause_;
  const bool fails_;
  size_t next_ = 0;
};

LineWorkOptions played_options() {
  return {.files = {"-"},
          .run = "runs/mine",
          .max_lines = 100,
          .batches = {.order = CostOrder::kLongestFirst, .max_cost = 12},
          .words = {.answer = "the echo of this line",
                    .problem = "its echo is empty",
                    .cut_to = "data.max_letters",
                    .cut_share = "of all letters were not heard"}};
}

struct Played {
  std::string out, err;
};

/// What is written when a source is worked off.
Played play(LineSource<PlayedLine>& source, PlayedFamily& family, LineWorkOptions options) {
  Played played;
  ::testing::internal::CaptureStderr();
  played.out = testing::standard_output_of([&] {
    LineWork<PlayedLine> work(family, std::move(options));
    work.run(source);
    work.finish();
  });
  played.err = ::testing::internal::GetCapturedStderr();
  return played;
}

/// The error that a source ends with, and what is written before.
std::pair<std::string, std::string> failure_of(LineSource<PlayedLine>& source, PlayedFamily& family,
                                               ExitCode code,
                                               LineWorkOptions options = played_options()) {
  std::string said;
  ::testing::internal::CaptureStderr();
  const std::string out = testing::standard_output_of([&] {
    said = testing::failure(code, [&] {
             LineWork<PlayedLine>(family, std::move(options)).run(source);
           }).what();
  });
  ::testing::internal::GetCapturedStderr();
  return {said, out};
}

TEST(LineWork, AnswersInTheOrderOfTheLinesWhateverTheBatches) {
  const std::vector<std::string> lines{"a", "a long one", "none", "bad", "two", "", "a longer one"};
  const std::string expected = "[a]\n[a long one]\n\n\n[two]\n[]\n[a longer one]\n";
  for (const int threads : {1, 3}) {
    const testing::Threads scope(threads);
    for (const size_t max_lines : {1, 2, 3, 100}) {
      PlayedFamily family;
      PlayedSource source(lines);
      auto options = played_options();
      options.max_lines = max_lines;
      EXPECT_EQ(play(source, family, options).out, expected) << max_lines << " lines a window";
      EXPECT_EQ(family.windows.size(), (lines.size() + max_lines - 1) / max_lines);
      EXPECT_EQ(family.num_finished, 1);
    }
  }
}

TEST(LineWork, RunsBatchesOfAboutOneCost) {
  const testing::Threads scope(1);
  PlayedFamily family;
  PlayedSource source({"a", "a long one", "none", "bad", "two", "", "a longer one"});
  play(source, family, played_options());
  EXPECT_EQ(family.batches, (std::vector<std::vector<int64_t>>{{6}, {1}, {4, 0, 5}}));
}

TEST(LineWork, NumbersLinesThroughAllWindowsAndSources) {
  PlayedFamily family;
  PlayedSource first({"a", "b", "c"}), second({"d"});
  auto options = played_options();
  options.max_lines = 2;
  options.batches.order = CostOrder::kAsRead;
  const std::string out = testing::standard_output_of([&] {
    LineWork<PlayedLine> work(family, options);
    work.run(first);
    work.run(second);
  });
  EXPECT_EQ(out, "[a]\n[b]\n[c]\n[d]\n");
  EXPECT_EQ(family.batches, (std::vector<std::vector<int64_t>>{{0, 1}, {2}, {3}}));
}

TEST(LineWork, EndsAWindowWhereTheNextLineHasNotComeAndWhereItIsFull) {
  PlayedFamily family;
  PlayedSource source({"a", "b", "c", "d", "e"}, /*pause=*/2);
  play(source, family, played_options());
  EXPECT_EQ(family.windows, (std::vector<size_t>{2, 3}));
  auto options = played_options();
  options.max_bytes = 4;
  PlayedFamily other;
  PlayedSource bytes({"aa", "bb", "c", "dddddd", "e"});
  play(bytes, other, options);
  EXPECT_EQ(other.windows, (std::vector<size_t>{2, 2, 1}));
}

// Many short paths of large files would fill the memory.
TEST(LineWork, AWindowIsBoundedByWhatItsLinesStandFor) {
  class Pictures : public PlayedFamily {
    size_t bytes(const PlayedLine& line) const override {
      EXPECT_TRUE(line.answer.empty()) << "asked after the line was run";
      return line.input.text.ends_with(".png") ? 1000 : PlayedFamily::bytes(line);
    }
  };
  auto options = played_options();
  options.max_bytes = 2000;
  Pictures family;
  PlayedSource source({"a.png", "b.png", "c.png", "bad", "d.png", "e"});
  EXPECT_EQ(play(source, family, options).out, "[a.png]\n[b.png]\n[c.png]\n\n[d.png]\n[e]\n");
  EXPECT_EQ(family.windows, (std::vector<size_t>{2, 3, 1}));
}

TEST(LineWork, FilesThatAreLinesAreNotLookedIntoForLines) {
  const testing::TempDir folder;
  auto options = played_options();
  options.files = {folder.write("a.png", "a\nb\nc\n"), folder.write("b.png", "d\ne\n")};
  EXPECT_EQ(expected_lines(options), 5);
  options.files_are_lines = true;
  EXPECT_EQ(expected_lines(options), 2);
  options.files = {"/nowhere/a.png"};
  EXPECT_EQ(expected_lines(options), 1);
  options.files_are_lines = false;
  EXPECT_EQ(expected_lines(options), -1);
}

// Few texts are not worth a thread, but few pictures are.
TEST(LineWork, FilesThatAreLinesArePreparedSideBySide) {
  class Meeting : public PlayedFamily {
   public:
    void prepare(PlayedLine& line) const override {
      PlayedFamily::prepare(line);
      ++come;
      for (int tries = 0; come < 2 && tries < 2000; ++tries) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      if (come < 2) line.input.problem = "nobody came";
    }
    mutable std::atomic<int> come = 0;
  };
  const testing::Threads scope(2);
  auto options = played_options();
  options.files_are_lines = true;
  Meeting family;
  PlayedSource source({"a.png", "b.png"});
  EXPECT_EQ(play(source, family, options).out, "[a.png]\n[b.png]\n");
}

TEST(LineWork, OfNoLinesDoesNothing) {
  PlayedFamily family;
  PlayedSource source({});
  auto options = played_options();
  options.stats = true;
  const auto played = play(source, family, options);
  EXPECT_EQ(played.out, "");
  EXPECT_TRUE(family.windows.empty());
  EXPECT_NE(played.err.find("0 lines in 0 batches, 3 words, 0.00 s"), std::string::npos)
      << played.err;
}

TEST(LineWork, ReadsFilesAndKeepsALineForEachThatCannotBeRead) {
  const testing::TempDir folder;
  const std::string file =
      folder.write("lines.txt", std::string("good\n\xff\xfe\nnot\0good\n\nlast", 22));
  data::TextInput input({file});
  TextSource<PlayedLine> source(input);
  PlayedFamily family;
  auto options = played_options();
  options.files = {file};
  const auto played = play(source, family, options);
  EXPECT_EQ(played.out, "[good]\n\n\n[]\n[last]\n");
  EXPECT_NE(played.err.find("lines.txt:2: not UTF-8; its echo is empty"), std::string::npos)
      << played.err;
  EXPECT_NE(played.err.find("lines.txt:3: a NUL byte; its echo is empty"), std::string::npos)
      << played.err;
  EXPECT_EQ(played.err.find("in all"), std::string::npos) << played.err;
}

TEST(LineWork, WarnsOfTheFirstBadLinesAndCountsTheOthers) {
  std::vector<std::string> lines(1200, "bad");
  lines.insert(lines.begin() + 1, "odd");
  PlayedSource source(lines);
  PlayedFamily family;
  const auto played = play(source, family, played_options());
  EXPECT_NE(played.err.find("played:1: a bad word; its echo is empty\n"), std::string::npos);
  EXPECT_NE(played.err.find("played:2: an odd word\n"), std::string::npos);
  EXPECT_NE(played.err.find("played:10: "), std::string::npos);
  EXPECT_EQ(played.err.find("played:11: "), std::string::npos);
  EXPECT_NE(played.err.find("1,201 lines in all could not be read as they are"), std::string::npos)
      << played.err;
}

TEST(LineWork, TellsInTheEndWhatTextsLost) {
  PlayedSource source({"a", "0123456789abcdefghi", "0123456789"});
  PlayedFamily family;
  EXPECT_NE(
      play(source, family, played_options())
          .err.find("1 line was cut to data.max_letters: 30.0 % of all letters were not heard"),
      std::string::npos);
}

TEST(LineWork, RefusesAnAnswerThatIsNotFiniteBehindTheAnswersBeforeIt) {
  for (const size_t max_lines : {1, 100}) {
    auto options = played_options();
    options.max_lines = max_lines;
    PlayedFamily family;
    PlayedSource source({"good", "bad", "none", "inf", "never"});
    const auto [said, out] = failure_of(source, family, ExitCode::kNumeric, options);
    EXPECT_EQ(said,
              "played:4: the echo of this line has values that are infinite or NaN, though the "
              "weights of runs/mine are finite");
    EXPECT_EQ(out, "[good]\n\n\n");
    EXPECT_EQ(family.num_finished, 0);
  }
}

TEST(LineWork, AnswersTheLinesBeforeAnErrorOfTheSource) {
  PlayedFamily family;
  PlayedSource source({"a", "b"}, /*pause=*/0, /*fails=*/true);
  const auto [said, out] = failure_of(source, family, ExitCode::kBadData);
  EXPECT_EQ(said, "the file ends too early");
  EXPECT_EQ(out, "[a]\n[b]\n");
}

/// A pipe that nobody reads any more.
class ClosedPipe : public std::streambuf {
 protected:
  int_type overflow(int_type /*byte*/) override { return traits_type::eof(); }
  int sync() override { return -1; }
};

TEST(LineWork, EndsWithTheWindowWhoseAnswersStdoutDoesNotTake) {
  ClosedPipe pipe;
  auto* const before = std::cout.rdbuf(&pipe);
  PlayedFamily family;
  PlayedSource source({"a", "b", "c", "d"});
  auto options = played_options();
  options.max_lines = 2;
  const Error error =
      testing::failure(ExitCode::kIo, [&] { LineWork<PlayedLine>(family, options).run(source); });
  std::cout.rdbuf(before);
  std::cout.clear();
  EXPECT_NE(error.message().find("cannot write to stdout"), std::string::npos) << error.message();
  EXPECT_EQ(family.windows, (std::vector<size_t>{2})) << "it went on";
}

TEST(LineWork, ThrowsWhatAFamilyThrowsOfOneBatch) {
  class Failing : public PlayedFamily {
    void run(std::span<PlayedLine* const> batch, const std::function<void()>& beat) const override {
      if (batch.front()->input.text == "late") throw std::runtime_error("no memory");
      PlayedFamily::run(batch, beat);
    }
  };
  const testing::Threads scope(3);
  Failing family;
  PlayedSource source({"a", "b", "late", "d"});
  auto options = played_options();
  options.batches = {.max_cost = 1};
  const std::string out = testing::standard_output_of(
      [&] { EXPECT_THROW(LineWork<PlayedLine>(family, options).run(source), std::runtime_error); });
  EXPECT_EQ(out, "");
}

TEST(LineWork, WritesJsonOfAnyBytesAsALine) {
  EXPECT_EQ(json_line({{"b", "x\n\xff"}, {"a", 1}}), "{\"b\":\"x\\n\xEF\xBF\xBD\",\"a\":1}\n");
}

}  // namespace
}  // namespace stretto::tasks
