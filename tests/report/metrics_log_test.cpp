#include "report/metrics_log.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <fstream>
#include <limits>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/hash.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::report {
namespace {

namespace fs = std::filesystem;

class MetricsLogTest : public ::testing::Test {
 protected:
  void put(const std::string& text) { std::ofstream(path_, std::ios::binary) << text; }
  std::string content() { return read_file(path_); }
  std::string resumed(const std::string& text, int64_t step, bool validated = true) {
    put(text);
    { const MetricsLog log(path_, ResumePoint{.step = step, .validated = validated}); }
    return content();
  }
  // What is said when a run goes on from step 2 with a file that holds `text`.
  std::string said(const std::string& text, const std::optional<MetricsMark>& mark) {
    put(text);
    ::testing::internal::CaptureStderr();
    { const MetricsLog log(path_, ResumePoint{.step = 2, .validated = true, .mark = mark}); }
    return ::testing::internal::GetCapturedStderr();
  }

  testing::TempDir directory_;
  const fs::path path_ = directory_ / "metrics.jsonl";
};

const char* const kStep1 = R"({"step":1,"epoch":1,"event":"train","loss":9.5})"
                           "\n";
const char* const kStep2 = R"({"step":2,"epoch":1,"event":"train","loss":9.25})"
                           "\n";
const char* const kValid2 = R"({"step":2,"epoch":1,"event":"valid","loss":9})"
                            "\n";
const char* const kStep3 = R"({"step":3,"epoch":1,"event":"train","loss":8.5})"
                           "\n";
const char* const kEnd2 = R"({"step":2,"epoch":1,"event":"end","reason":"stopped"})"
                          "\n";

TEST_F(MetricsLogTest, CutsAwayWhatAResumeSaidOfItsDataAtThisStep) {
  const std::string data2 = R"({"step":2,"epoch":1,"event":"data","note":"other data"})"
                            "\n";
  const std::string text = kStep1 + std::string(kStep2) + kValid2 + data2 + kStep3;
  EXPECT_EQ(resumed(text, 2), kStep1 + std::string(kStep2) + kValid2) << "it will say so again";
  EXPECT_EQ(resumed(text, 3), text);
}

TEST_F(MetricsLogTest, WritesKeysInAFixedOrder) {
  MetricsEvent event{.step = 7, .epoch = 2, .event = "train"};
  event.unscheduled = true;
  event.note = "n";
  event.processes = 4;
  event.comm_wait_seconds = 0.125;
  event.comm_seconds = 0.25;
  event.sparsity = 0.75;
  event.noise_scale = 12000.5;
  event.data_wait_seconds = 0.5;
  event.reason = "r";
  event.weights_hash = "00000000000000ff";
  event.batch_hash = "0123456789abcdef";
  event.skipped = true;
  event.scores = {{"bleu", 12.5}};
  event.seconds = 3;
  event.peak_device_memory_bytes = 1 << 21;
  event.peak_memory_bytes = 1 << 20;
  event.loss_scale = 1;
  event.counts = {{"target_tokens", int64_t{100}},
                  {"source_tokens", int64_t{90}},
                  {"tokens_per_second", 3900.5}};
  event.grad_norm = 0.5;
  event.lr = 5e-4;
  event.measures = {{"nll", 2.11}, {"ppl", 8.25}};
  event.loss = 2.5;
  EXPECT_EQ(event.to_json(),
            R"({"step":7,"epoch":2,"event":"train","loss":2.5,"nll":2.11,"ppl":8.25,"lr":5e-04,)"
            R"("grad_norm":0.5,"target_tokens":100,"source_tokens":90,"tokens_per_second":3900.5,)"
            R"("loss_scale":1,"peak_memory_bytes":1048576,"peak_device_memory_bytes":2097152,)"
            R"("seconds":3,"bleu":12.5,"skipped":true,)"
            R"("batch_hash":"0123456789abcdef","weights_hash":"00000000000000ff","reason":"r",)"
            R"("data_wait_seconds":0.5,"noise_scale":12000.5,"sparsity":0.75,"comm_seconds":0.25,)"
            R"("comm_wait_seconds":0.125,"processes":4,)"
            R"("note":"n","unscheduled":true})");
}

TEST_F(MetricsLogTest, ReadsEveryFieldBack) {
  const std::string line =
      R"({"step":7,"epoch":2,"event":"train","loss":2.5,"nll":2.11,"ppl":8.25,"lr":5e-04,)"
      R"("grad_norm":0.5,"target_tokens":100,"source_tokens":90,"tokens_per_second":3900.5,)"
      R"("loss_scale":1,"peak_memory_bytes":1048576,"peak_device_memory_bytes":2097152,)"
      R"("seconds":3,"bleu":12.5,"skipped":true,)"
      R"("batch_hash":"0123456789abcdef","weights_hash":"00000000000000ff","reason":"r",)"
      R"("data_wait_seconds":0.5,"noise_scale":12000.5,"sparsity":0.75,"comm_seconds":0.25,)"
      R"("comm_wait_seconds":0.125,"processes":4,)"
      R"("note":"n","unscheduled":true})";
  put(line + "\n");
  const auto events = read_metrics(path_);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].to_json(), line);
}

TEST_F(MetricsLogTest, FindsATasksNumbersByTheirNamesWhereverTheyStand) {
  put(R"({"step":1,"event":"valid","loss":2,"accuracy":0.75,"margin":3,"images":9000000,)"
      R"("seconds":3,"wer":8,"checked":true,"words":"x","nothing":null})"
      "\n");
  const auto event = read_metrics(path_).at(0);
  EXPECT_EQ(event.number("loss"), 2);
  EXPECT_EQ(event.number("accuracy"), 0.75);
  EXPECT_EQ(event.number("margin"), 3) << "a measure that happens to be whole";
  EXPECT_EQ(event.number("images"), 9'000'000);
  EXPECT_EQ(event.number("wer"), 8);
  for (const char* none : {"seconds", "checked", "words", "nothing", "nll"}) {
    EXPECT_FALSE(event.number(none).has_value()) << none;
  }
  ASSERT_EQ(event.scores.size(), 1u);
  EXPECT_FALSE(event.scores[0].is_count()) << "a score is drawn";
}

TEST_F(MetricsLogTest, WritesACountWithoutAnExponent) {
  MetricsEvent event{.step = 1, .epoch = 1, .event = "train"};
  event.counts = {{"images", int64_t{1'000'000}}, {"rate", 1e6}};
  EXPECT_NE(event.to_json().find(R"("images":1000000,"rate":1e+06})"), std::string::npos)
      << event.to_json();
}

TEST_F(MetricsLogTest, LeavesOutWhatIsAbsentAndWritesNullForWhatIsNotFinite) {
  MetricsEvent event{.step = 1, .epoch = 1, .event = "valid"};
  event.loss = std::numeric_limits<double>::quiet_NaN();
  event.measures = {{"nll", -std::numeric_limits<double>::infinity()}};
  EXPECT_EQ(event.to_json(), R"({"step":1,"epoch":1,"event":"valid","loss":null,"nll":null})");
}

TEST_F(MetricsLogTest, ReadsBackTheSameDoubles) {
  MetricsLog log(path_, std::nullopt);
  const std::vector<double> losses = {0.1 + 0.2, 1.0 / 3, 9.123456789012345, 5e-324, 1.7e308, -0.0};
  for (const double loss : losses) {
    MetricsEvent event{.step = 1, .epoch = 1, .event = "train"};
    event.loss = loss;
    log.write(event);
  }
  const auto events = read_metrics(path_);
  ASSERT_EQ(events.size(), losses.size());
  for (size_t i = 0; i < losses.size(); ++i) EXPECT_EQ(*events[i].loss, losses[i]);
  EXPECT_TRUE(std::signbit(*events.back().loss));
}

TEST_F(MetricsLogTest, EscapesAHostileReasonAndKeepsOneLine) {
  MetricsLog log(path_, std::nullopt);
  MetricsEvent event{.step = 1, .epoch = 1, .event = "end"};
  event.reason = "a\"b\\\nline\x1b[2J\xff";
  log.write(event);
  const std::string text = content();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_EQ(*read_metrics(path_)[0].reason, "a\"b\\\nline\x1b[2J\uFFFD");
}

TEST_F(MetricsLogTest, ResumeCutsOffLaterStepsAndKeepsTheStepItself) {
  EXPECT_EQ(resumed(std::string(kStep1) + kStep2 + kValid2 + kStep3, 2),
            std::string(kStep1) + kStep2 + kValid2);
}

TEST_F(MetricsLogTest, ResumeDropsTheEndEvent) {
  EXPECT_EQ(resumed(std::string(kStep1) + kStep2 + kEnd2, 2), std::string(kStep1) + kStep2);
}

TEST_F(MetricsLogTest, ResumeDropsATornLastLine) {
  EXPECT_EQ(resumed(std::string(kStep1) + kStep2 + R"({"step":2,"epo)", 2),
            std::string(kStep1) + kStep2);
  EXPECT_EQ(resumed(std::string(kStep1) + std::string(20, '\0') + "\n", 2), kStep1);
}

// As of a run that was killed between the checkpoint and that validation: it will be made again.
TEST_F(MetricsLogTest, ResumeDropsAValidationThatTheCheckpointDoesNotKnow) {
  const std::string valid1 = R"({"step":1,"epoch":1,"event":"valid","loss":9})"
                             "\n";
  const std::string before = kStep1 + valid1 + kStep2;
  EXPECT_EQ(resumed(before + kValid2, 2, /*validated=*/false), before);
  EXPECT_EQ(resumed(before + kValid2, 2, /*validated=*/true), before + kValid2);
}

TEST_F(MetricsLogTest, ResumeNamesLinesThatAreNoEventsAndKeepsTheFileAside) {
  const std::string zeros(20, '\0');
  const std::string text = std::string(kStep1) + "not json\n" + zeros + "\n" + kStep2;
  const std::string words = said(text, std::nullopt);
  for (const char* part : {"metrics.jsonl:2: left out", "metrics.jsonl:3: left out",
                           "bad-metrics.jsonl", "training goes on"}) {
    EXPECT_NE(words.find(part), std::string::npos) << part << " is missing in\n" << words;
  }
  EXPECT_EQ(content(), std::string(kStep1) + kStep2);
  EXPECT_EQ(read_file(directory_ / "bad-metrics.jsonl"), text);
  // Another time the first such file stays.
  said(kStep1 + std::string("[]\n"), std::nullopt);
  EXPECT_EQ(read_file(directory_ / "bad-metrics.jsonl"), text);
  EXPECT_EQ(read_file(directory_ / "bad-metrics-2.jsonl"), kStep1 + std::string("[]\n"));
}

TEST_F(MetricsLogTest, ResumeOfSoundMetricsSaysNothing) {
  MetricsLog log(path_, ResumePoint{});
  log.write({.step = 1, .epoch = 1, .event = "train"});
  log.write({.step = 2, .epoch = 1, .event = "valid"});
  const MetricsMark mark = log.mark();
  const std::string known = content();
  EXPECT_EQ(mark.bytes, known.size());
  EXPECT_EQ(mark.hash, xxh3_64(known));
  // What came after the checkpoint, with a torn end, is no damage.
  EXPECT_EQ(said(known + kStep3 + kEnd2 + R"({"step":3)", mark), "");
  EXPECT_EQ(content(), known);
  EXPECT_EQ(said(known, std::nullopt), "") << "an earlier version left no mark";
  EXPECT_FALSE(fs::exists(directory_ / "bad-metrics.jsonl"));
}

TEST_F(MetricsLogTest, ResumeNoticesAFigureThatHasChanged) {
  const std::string known = std::string(kStep1) + kStep2;
  const MetricsMark mark{.bytes = known.size(), .hash = xxh3_64(known)};
  std::string damaged = known;
  damaged[damaged.find("9.25")] = '1';  // still an event
  EXPECT_NE(said(damaged, mark).find("damaged or edited"), std::string::npos);
  EXPECT_EQ(content(), damaged);
  EXPECT_NE(said(kStep1, mark).find("damaged or edited"), std::string::npos) << "a line is gone";
  const std::string words = said("", mark);
  EXPECT_NE(words.find("checkpoint of step 2"), std::string::npos) << words;
}

TEST_F(MetricsLogTest, TheMarkGoesOnAfterAResume) {
  put(std::string(kStep1) + kStep2);
  MetricsLog log(path_, ResumePoint{.step = 1});
  log.write({.step = 2, .epoch = 1, .event = "valid"});
  EXPECT_EQ(log.mark().hash, xxh3_64(content()));
  EXPECT_EQ(log.mark().bytes, content().size());
}

TEST_F(MetricsLogTest, ResumeKeepsTheBytesOfLinesThatStay) {
  const std::string odd = R"({ "step": 1, "epoch": 1, "event": "train", "later_key": 3 })"
                          "\n";
  EXPECT_EQ(resumed(odd + kStep3, 1), odd);
}

TEST_F(MetricsLogTest, ResumeFromTheBeginningLeavesNothingBehind) {
  EXPECT_EQ(resumed(std::string(kStep1) + kStep2, 0), "");
  const std::string note = R"({"step":0,"epoch":0,"event":"data","note":"left out"})"
                           "\n";
  EXPECT_EQ(resumed(note + kStep1, 0), "") << "the data are read and told anew";
  EXPECT_EQ(resumed(note + kStep1 + kStep2, 1), note + kStep1);
  fs::remove(path_);
  { const MetricsLog log(path_, ResumePoint{}); }  // no file yet
  EXPECT_EQ(content(), "");
}

TEST_F(MetricsLogTest, AppendsAfterAResume) {
  put(std::string(kStep1) + kStep2);
  MetricsLog log(path_, ResumePoint{.step = 1});
  log.write({.step = 2, .epoch = 1, .event = "valid"});
  EXPECT_EQ(content(), std::string(kStep1) + R"({"step":2,"epoch":1,"event":"valid"})"
                                             "\n");
}

TEST_F(MetricsLogTest, ReadingNamesTheLineThatIsBroken) {
  for (const char* broken : {"not json", "[1]", R"({"step":"x","event":"train"})", R"({"step":1})",
                             R"({"step":1,"event":"train","x":{"y":1}})"}) {
    SCOPED_TRACE(broken);
    put(std::string(kStep1) + broken + "\n" + kStep2);
    const Error error = testing::failure(ExitCode::kBadData, [&] { read_metrics(path_); });
    EXPECT_NE(std::string(error.what()).find("metrics.jsonl:2:"), std::string::npos)
        << error.what();
  }
}

TEST_F(MetricsLogTest, ReadingCanLeaveBrokenLinesOutAndTellOfThem) {
  put(std::string(kStep1) + "not json\n" + kStep2 + "{}\n" + kStep3 + R"({"step":4)");
  std::vector<BrokenLine> broken;
  const auto events = read_metrics(path_, broken);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[2].step, 3);
  ASSERT_EQ(broken.size(), 2u);
  EXPECT_EQ(broken[0].number, 2);
  EXPECT_EQ(broken[1].number, 4);
  EXPECT_FALSE(broken[1].why.empty());
}

TEST_F(MetricsLogTest, OfManyBrokenLinesTheFirstAreNamedAndTheOthersCounted) {
  std::vector<BrokenLine> broken;
  for (int64_t line = 1; line <= 12; ++line) broken.push_back({line, "no\x1b[2J event"});
  ::testing::internal::CaptureStderr();
  warn_of_broken_lines("metrics.jsonl", broken);
  const std::string words = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(words.find("metrics.jsonl:5: left out"), std::string::npos) << words;
  EXPECT_EQ(words.find("metrics.jsonl:6:"), std::string::npos) << words;
  EXPECT_NE(words.find("7 more lines"), std::string::npos) << words;
  EXPECT_EQ(words.find('\x1b'), std::string::npos) << "a terminal would obey";
}

TEST_F(MetricsLogTest, AWriteThatIsCutShortOrInterruptedIsFinished) {
  const MetricsEvent event{.step = 1, .epoch = 1, .event = "train"};
  for (const char* fault :
       {"metrics.write:short:1", "metrics.write:short:1;metrics.write:short:2",
        "metrics.write:eintr:1", "metrics.write:short:1;metrics.write:eintr:2"}) {
    SCOPED_TRACE(fault);
    put("");
    MetricsLog log(path_, std::nullopt);
    set_failpoints(fault);
    EXPECT_NO_THROW(log.write(event));
    set_failpoints("");
    log.write(event);
    EXPECT_EQ(content(), event.to_json() + "\n" + event.to_json() + "\n");
  }
}

TEST_F(MetricsLogTest, AfterAShortWriteAFullDiskTakesThePartBack) {
  const MetricsEvent event{.step = 1, .epoch = 1, .event = "train"};
  MetricsLog log(path_, std::nullopt);
  set_failpoints("metrics.write:short:1;metrics.write:enospc:2");
  testing::failure(ExitCode::kIo, [&] { log.write(event); });
  set_failpoints("");
  EXPECT_EQ(content(), "");
}

TEST_F(MetricsLogTest, ReadingLeavesATornLastLineOut) {
  put(std::string(kStep1) + R"({"step":2)");
  EXPECT_EQ(read_metrics(path_).size(), 1u);
}

TEST_F(MetricsLogTest, APartOfALineIsTakenBack) {
  MetricsLog log(path_, std::nullopt);
  const MetricsEvent event{.step = 1, .epoch = 1, .event = "train"};
  log.write(event);
  const std::string before = content();
  rlimit old{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{before.size() + 10, old.rlim_max};  // room for ten bytes of the next line
  ::setrlimit(RLIMIT_FSIZE, &small);
  testing::failure(ExitCode::kIo, [&] { log.write(event); });
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(content(), before);
  log.write(event);
  EXPECT_EQ(read_metrics(path_).size(), 2u);
}

}  // namespace
}  // namespace stretto::report
