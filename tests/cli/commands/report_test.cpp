#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "tests/cli/program.h"

namespace stretto::cli {
namespace {

namespace fs = std::filesystem;
using stretto::testing::has;
using stretto::testing::Program;
using stretto::testing::ProgramResult;
using stretto::testing::text_of;

/// Run folders as training leaves them, without checkpoints.
class ComparedRuns : public ::testing::Test {
 protected:
  ComparedRuns() {
    for (const char* name : {"a.src", "a.tgt"}) folder().write(name, "one line\n");
    folder().write("words.txt", "one\nline\n");
    folder().write("translation.toml",
                   "[data]\ntrain_src = [\"a.src\"]\ntrain_tgt = [\"a.tgt\"]\n"
                   "valid_src = [\"a.src\"]\nvalid_tgt = [\"a.tgt\"]\n"
                   "[tokenizer]\ntype = \"vocab\"\nsrc_vocab = \"words.txt\"\n"
                   "[train]\nmax_steps = 9000\n");
    folder().write("train.tsv", "text\tlabel\nred\tno\nblue\tyes\n");
    folder().write("labels.toml",
                   "[task]\nname = \"text_classification\"\n"
                   "[data]\ntrain = [\"train.tsv\"]\nvalid = [\"train.tsv\"]\n"
                   "[tokenizer]\nvocab_size = 40\n[schedule]\nwarmup_steps = 0\n"
                   "[train]\nmax_steps = 5\n");
  }

  const testing::TempDir& folder() const { return program_.folder; }
  ProgramResult run(const std::vector<std::string>& words) const { return program_.run(words); }
  fs::path at(const std::string& name) const { return folder().path() / name; }

  /// A run with three updates, the last one with this loss.
  void make(const std::string& name, const std::vector<std::string>& overrides, double loss,
            const std::string& config = "translation.toml") const {
    std::vector<std::string> words{"check", config, "--resolved"};
    words.insert(words.end(), overrides.begin(), overrides.end());
    const auto resolved = run(words);
    EXPECT_EQ(resolved.code, 0) << resolved.err;
    program_.write_run(resolved.out);
    std::string metrics;
    for (int step = 1; step <= 3; ++step) {
      const std::string now = std::to_string(step);
      metrics += "{\"step\":" + now +
                 ",\"epoch\":1,\"event\":\"train\",\"loss\":" + std::to_string(loss + 3 - step) +
                 ",\"lr\":0.001,\"grad_norm\":1.5,\"target_tokens\":50,"
                 "\"tokens_per_second\":70.5,\"seconds\":" +
                 now + "}\n";
    }
    metrics +=
        "{\"step\":3,\"epoch\":1,\"event\":\"valid\",\"loss\":" + std::to_string(loss) + "}\n";
    folder().write("run/metrics.jsonl", metrics);
    folder().write("run/report.json", R"({"format":1,"machine":[["processor","The )" + name +
                                          R"("]],"facts":[],"samples_step":0,"samples":[]})");
    fs::create_directories(at(name).parent_path());
    fs::rename(at("run"), at(name));
  }

  Program program_;
};

TEST_F(ComparedRuns, AreDrawnInOnePageWithItsNumbersBesideIt) {
  make("x/one", {}, 2.5);
  make("x/two", {"optim.lr=0.002"}, 1.5);
  const auto outcome = run({"report", "x/one", "x/two"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "comparison.html\n");
  EXPECT_EQ(outcome.err, "");
  const std::string page = text_of(at("comparison.html"));
  for (const char* words : {"one, two – Stretto comparison", "The x/one", "The x/two",
                            "Loss, training", "over tokens", "over time", "stopped at update 3",
                            "optim.lr</th><td>0.0005</td><td>0.002</td>", "best 1.500: two"}) {
    EXPECT_TRUE(has(page, words)) << words;
  }
  const auto json = nlohmann::json::parse(text_of(at("comparison.json")));
  EXPECT_EQ(json.at("runs").at(1).at("best").at("loss").at("value"), 1.5);
  EXPECT_EQ(json.at("differences").size(), 1U) << json.at("differences");
  EXPECT_EQ(json.at("charts").size(), 3U * 5U) << "loss twice, rate, gradient and throughput";
  EXPECT_FALSE(fs::exists(at("x/one/report.html"))) << "the runs stay as they are";
}

TEST_F(ComparedRuns, MayGoElsewhereAndToStdoutAsJson) {
  make("one", {}, 2.5);
  make("two", {}, 1.5);
  fs::create_directory(at("pages"));
  const auto outcome = run({"report", "one", "two", "--output", "pages/both.html", "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, text_of(at("pages/both.json")));
  EXPECT_EQ(nlohmann::json::parse(outcome.out).at("runs").size(), 2U);
  EXPECT_FALSE(fs::exists(at("comparison.html")));
  EXPECT_EQ(run({"report", "one", "two", "--output", "both.json"}).code, 2);
  EXPECT_EQ(run({"report", "one", "two", "--output", "no/such/both.html"}).code, 74);
  const std::string kept = text_of(at("one/report.json"));
  EXPECT_EQ(run({"report", "one", "two", "--output", "one/report.html"}).code, 2);
  EXPECT_EQ(text_of(at("one/report.json")), kept) << "the data beside the page would replace it";
  const auto streamed = run({"report", "one", "two", "--output", "/dev/stdout"});
  EXPECT_EQ(streamed.code, 0) << streamed.err;
  EXPECT_FALSE(fs::exists("/dev/stdout.json"));
  EXPECT_TRUE(streamed.out.starts_with("<!DOCTYPE html>") && streamed.out.ends_with("</html>\n"));
}

TEST_F(ComparedRuns, ReplaceNoNumbersButTheirOwn) {
  make("one", {}, 2.5);
  make("two", {}, 1.5);
  const std::vector<std::string> words{"report", "one", "two", "--output", "cmp.html"};
  EXPECT_EQ(run(words).code, 0);
  EXPECT_EQ(run(words).code, 0) << "the second time over its own";
  for (const char* text : {"{\"mine\": 1}\n", "", "{\"format\":1,\"runs\":7}\n"}) {
    fs::remove(at("cmp.html"));
    folder().write("cmp.json", text);
    const auto outcome = run(words);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_TRUE(has(outcome.err, "would replace cmp.json")) << outcome.err;
    EXPECT_TRUE(has(outcome.err, "give another name to --output")) << outcome.err;
    EXPECT_EQ(text_of(at("cmp.json")), text);
    EXPECT_FALSE(fs::exists(at("cmp.html")));
  }
  fs::remove(at("cmp.json"));
  fs::create_directory(at("cmp.json"));
  EXPECT_EQ(run(words).code, 2);
  EXPECT_FALSE(fs::exists(at("cmp.html")));
}

TEST_F(ComparedRuns, OneRunHasItsPageElsewhereAndItsNumbersToo) {
  make("one", {}, 2.5);
  const auto outcome = run({"report", "one/", "--output", "page.html", "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(nlohmann::json::parse(outcome.out).at("runs").at(0).at("name"), "one");
  EXPECT_TRUE(has(text_of(at("page.html")), "Stretto training report"));
  EXPECT_FALSE(fs::exists(at("one/report.html")));
  EXPECT_FALSE(fs::exists(at("page.json")));
}

TEST_F(ComparedRuns, OfDifferentFamiliesDrawWhatTheyShare) {
  make("words", {}, 2.5);
  make("labels", {}, 1.5, "labels.toml");
  const auto outcome = run({"report", "words", "labels"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::string page = text_of(at("comparison.html"));
  for (const char* words :
       {"Loss, training", "Gradient norm", "data.train_src", "task.name", "text_classification"}) {
    EXPECT_TRUE(has(page, words)) << words;
  }
  EXPECT_FALSE(has(page, "<h3>Perplexity"));
}

TEST_F(ComparedRuns, ADamagedRunIsNamedAndLeftOut) {
  make("one", {}, 2.5);
  make("two", {}, 1.5);
  make("cut", {}, 1.5);
  const std::string config = text_of(at("cut/config.toml"));
  folder().write("cut/config.toml", config.substr(0, config.size() / 2));
  const auto outcome = run({"report", "one", "cut", "two"});
  EXPECT_EQ(outcome.code, 65) << outcome.err;
  EXPECT_EQ(outcome.out, "comparison.html\n");
  EXPECT_TRUE(has(outcome.err, "warning: cut is left out: cut/config.toml")) << outcome.err;
  const std::string page = text_of(at("comparison.html"));
  EXPECT_TRUE(has(page, "<h2>Left out</h2>") && has(page, "best 1.500: two"));
  const auto json = nlohmann::json::parse(text_of(at("comparison.json")));
  EXPECT_EQ(json.at("runs").size(), 2U);
  EXPECT_EQ(json.at("left_out").at(0).at("folder"), "cut");

  fs::remove(at("comparison.html"));
  folder().write("one/metrics.jsonl", "nothing\nof this\n");
  folder().write("two/run.json", "{");
  EXPECT_EQ(run({"report", "one", "cut", "two"}).code, 65);
  EXPECT_FALSE(fs::exists(at("comparison.html"))) << "nothing is left to draw";
}

TEST_F(ComparedRuns, ALineOrAReportThatIsBrokenCostsNoRun) {
  make("one", {}, 2.5);
  make("two", {}, 1.5);
  folder().write("one/metrics.jsonl", text_of(at("one/metrics.jsonl")) + "{\"step\":4,\"ep\n{}\n");
  folder().write("two/report.json", "{\"format\":1,");
  const auto outcome = run({"report", "one", "two"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "one/metrics.jsonl:5: left out")) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "two/report.json:1:")) << outcome.err;
}

TEST_F(ComparedRuns, ThatTrainOrHaveJustBegunAreReadAsTheyStand) {
  make("one", {}, 2.5);
  make("two", {}, 1.5);
  make("begun", {}, 1.5);
  fs::remove(at("begun/metrics.jsonl"));
  fs::remove(at("begun/report.json"));
  std::string torn = text_of(at("two/metrics.jsonl"));
  folder().write("two/metrics.jsonl", torn + "{\"step\":4,\"epo");
  const auto lock = FileLock::try_now(at("two/.lock"), "a test");
  const auto outcome = run({"report", "one", "two", "begun"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const std::string page = text_of(at("comparison.html"));
  EXPECT_TRUE(has(page, "running, update 3") && has(page, "stopped at update 3"));
  EXPECT_TRUE(has(page, "no event yet"));
}

TEST_F(ComparedRuns, OfSeveralBatchesHaveTheirScoresDrawnAgainstIt) {
  make("small", {}, 2.5);
  make("large", {"train.update_freq=4"}, 1.5);
  std::vector<std::string> words{"report", "small"};
  for (int copy = 1; copy < 25; ++copy) {
    words.push_back("small" + std::to_string(copy));
    fs::copy(at("small"), at(words.back()), fs::copy_options::recursive);
  }
  const auto refused = run(words);
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(has(refused.err, "25 runs cannot be told apart")) << refused.err;
  EXPECT_FALSE(fs::exists(at("comparison.html")));
  words.push_back("large");
  const auto outcome = run(words);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string page = text_of(at("comparison.html"));
  EXPECT_TRUE(has(page, "Against the batch") && has(page, "gradual warm-up"));
  EXPECT_FALSE(has(page, "over updates</label>")) << "26 curves cannot be told apart";
  const auto points = nlohmann::json::parse(text_of(at("comparison.json")))
                          .at("batches")
                          .at("lines")
                          .at(0)
                          .at("points");
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0].at("runs").size(), 25U);
  EXPECT_EQ(points[1].at("batch"), 4 * points[0].at("batch").get<int>());
  EXPECT_EQ(points[1].at("mean"), 1.5);
}

TEST_F(ComparedRuns, WrongWordsAreRefusedBeforeAnythingIsWritten) {
  make("one", {}, 2.5);
  make("two", {}, 1.5);
  struct Case {
    std::vector<std::string> runs;
    const char* words;
  };
  for (const auto& [runs, words] :
       {Case{{"one", "tow"}, "no run folder at tow"},
        Case{{"one", "./one"}, "./one is given twice"},
        Case{{"one", "x.src"}, "no run folder at x.src"},
        Case{std::vector<std::string>(241, "one"), "241 runs cannot be"}}) {
    std::vector<std::string> all{"report"};
    all.insert(all.end(), runs.begin(), runs.end());
    const auto outcome = run(all);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_TRUE(has(outcome.err, words)) << outcome.err;
    EXPECT_FALSE(fs::exists(at("comparison.html")));
  }
}

}  // namespace
}  // namespace stretto::cli
