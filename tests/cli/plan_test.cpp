#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "tests/cli/program.h"

namespace stretto {
namespace {

using Json = nlohmann::json;
using stretto::testing::Program;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A folder with the base model's configuration, whose data is not there.
class PlanLab : public Program {
 public:
  PlanLab() {
    folder.write("base.toml",
                 "[data]\ntrain_src = [\"no.src\"]\ntrain_tgt = [\"no.tgt\"]\n"
                 "valid_src = [\"no.src\"]\nvalid_tgt = [\"no.tgt\"]\n"
                 "[tokenizer]\nvocab_size = 32768\n[train]\nmax_steps = 9000\nupdate_freq = 16\n");
  }

  Json plan(std::vector<std::string> words) const {
    words.insert(words.begin(), {"plan", "--scaling"});
    words.push_back("--json");
    const auto outcome = run(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out);
  }
};

TEST(PlanCommand, CountsTheModelAndPredictsUpToTheWorldSize) {
  const auto plan = PlanLab().plan({"base.toml", "--world-size", "8", "--compute-ms", "100"});
  EXPECT_EQ(plan["inputs"]["parameters"], 60'915'712);
  EXPECT_EQ(plan["inputs"]["gradient_bytes"], 4.0 * 60'915'712);
  EXPECT_EQ(plan["inputs"]["micro_batches"], 16);
  EXPECT_EQ(plan["world_size"], 8);
  ASSERT_EQ(plan["sizes"].size(), 8u);
  EXPECT_NEAR(plan["sizes"][0]["step_seconds"].get<double>(), 1.6, 1e-9);
  EXPECT_EQ(plan["sizes"][0]["efficiency"], 1.0);
  for (const char* name : {"step_seconds", "compute_seconds", "communication_seconds",
                           "exposed_seconds", "tokens_per_second", "efficiency"}) {
    EXPECT_EQ(plan[name], plan["sizes"][7][name]) << name;
    EXPECT_TRUE(plan[name].is_number()) << name;
  }
}

std::set<std::string> keys_of(const Json& object) {
  std::set<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.insert(key);
  return keys;
}

TEST(PlanCommand, TheFieldsAreThoseOfTheManual) {
  const auto plan = PlanLab().plan({"base.toml", "--world-size", "20"});
  const std::set<std::string> numbers{
      "compute_seconds", "communication_seconds", "exposed_seconds", "step_seconds",
      "limit_seconds",   "tokens_per_second",     "speedup",         "efficiency"};
  auto whole = numbers, size = numbers;
  whole.insert({"world_size", "inputs", "assumed", "sizes"});
  size.insert("processes");
  EXPECT_EQ(keys_of(plan), whole);
  for (const auto& one : plan["sizes"]) EXPECT_EQ(keys_of(one), size);
  EXPECT_EQ(plan["sizes"].size(), 17u);
  EXPECT_EQ(plan["sizes"].back()["processes"], 20);
  const std::set<std::string> inputs{"compute_seconds",
                                     "compute_source",
                                     "optimizer_seconds",
                                     "tokens_per_micro_batch",
                                     "micro_batches",
                                     "weak",
                                     "gradient_bytes",
                                     "bucket_bytes",
                                     "late_share",
                                     "overlap",
                                     "per_host",
                                     "host_bytes_per_second",
                                     "host_latency_seconds",
                                     "link_bytes_per_second",
                                     "link_latency_seconds",
                                     "backward_share",
                                     "jitter",
                                     "contention",
                                     "overlap_cost",
                                     "parameters"};
  EXPECT_EQ(keys_of(plan["inputs"]), inputs);
  const auto page = read_file(std::filesystem::path(STRETTO_SOURCE_DIR) / "docs" / "scaling.md");
  const size_t begin = page.find("## JSON"), end = page.find("\n## ", begin);
  const auto section = page.substr(begin, end - begin);
  for (const auto& names : {whole, size, inputs}) {
    for (const auto& name : names) EXPECT_TRUE(has(section, "`" + name + "`")) << name;
  }
}

TEST(PlanCommand, LeavesOutWhatIsNotKnown) {
  const auto plan = PlanLab().plan(
      {"--compute-ms", "100", "--gradient-mb", "100", "--world-size", "2", "--link-gbit", "8"});
  EXPECT_FALSE(plan.contains("tokens_per_second"));
  EXPECT_FALSE(plan["inputs"].contains("parameters"));
  EXPECT_EQ(plan["inputs"]["weak"], true);
  EXPECT_EQ(plan["inputs"]["compute_source"], "given");
}

TEST(PlanCommand, NeedsNoConfigurationForAMeasuredMicroBatch) {
  const auto plan = PlanLab().plan({"--compute-ms", "100", "--gradient-mb", "100", "--link-gbit",
                                    "8", "--latency-us", "0", "--world-size", "2", "--no-overlap"});
  EXPECT_TRUE(plan["assumed"].empty()) << plan["assumed"];
  EXPECT_NEAR(plan["communication_seconds"].get<double>(), 0.1, 1e-12);
  EXPECT_NEAR(plan["step_seconds"].get<double>(), 0.2, 1e-12);
  EXPECT_NEAR(plan["efficiency"].get<double>(), 0.5, 1e-12);
}

TEST(PlanCommand, CompressionAndOverridesChangeWhatIsSent) {
  const PlanLab lab;
  const std::vector<std::string> words{"base.toml", "--world-size", "2", "--compute-ms", "100"};
  auto compressed = words, overridden = words;
  compressed.insert(compressed.end(), {"--compress", "bf16"});
  overridden.insert(overridden.begin() + 1, {"dist.compress=bf16", "train.update_freq=4"});
  EXPECT_EQ(lab.plan(compressed)["inputs"]["gradient_bytes"], 2.0 * 60'915'712);
  const auto plan = lab.plan(overridden);
  EXPECT_EQ(plan["inputs"]["gradient_bytes"], 2.0 * 60'915'712);
  EXPECT_EQ(plan["inputs"]["micro_batches"], 4);
}

TEST(PlanCommand, SaysWhatItAssumed) {
  const auto outcome = PlanLab().run({"plan", "--scaling", "base.toml", "--world-size", "16"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* word : {"60,915,712 parameters", "assumed: a process computes 50 GFLOP/s",
                           "assumed: 8 processes on a host", "--link-gbit", "efficiency"}) {
    EXPECT_TRUE(has(outcome.out, word)) << word << "\n" << outcome.out;
  }
}

TEST(PlanCommand, TakesTheThroughputOfARun) {
  const PlanLab lab;
  // A run's own configuration: two micro-batches an update.
  lab.folder.write("run/config.toml",
                   lab.run({"check", "base.toml", "train.update_freq=2", "data.train_src=base.toml",
                            "data.train_tgt=base.toml", "data.valid_src=base.toml",
                            "data.valid_tgt=base.toml", "--resolved"})
                       .out);
  lab.folder.write("run/run.json", "{\"run_id\": \"0\"}");
  const auto event = [](int step, int tokens, int rate) {
    return "{\"step\":" + std::to_string(step) +
           ",\"epoch\":1,\"event\":\"train\",\"target_tokens\":" + std::to_string(tokens) +
           ",\"tokens_per_second\":" + std::to_string(rate) + "}\n";
  };
  lab.folder.write("run/metrics.jsonl", event(1, 4000, 10) + event(2, 4000, 1000) +
                                            event(3, 4000, 2000) + event(4, 4000, 1000));
  const auto plan = lab.plan({"--run", "run", "--world-size", "2"});
  EXPECT_NEAR(plan["inputs"]["compute_seconds"].get<double>(), 2.0,
              1e-9);  // median, first left out
  EXPECT_NEAR(plan["inputs"]["tokens_per_micro_batch"].get<double>(), 2000, 1e-9);
  lab.folder.write("run/metrics.jsonl", event(1, 4000, 10));
  const auto early = lab.run({"plan", "--scaling", "--run", "run", "--world-size", "2"});
  EXPECT_EQ(early.code, 2);
  EXPECT_TRUE(has(early.err, "has measured nothing yet")) << early.err;
}

TEST(PlanCommand, SaysWhatIsMissing) {
  const PlanLab lab;
  for (const auto& [words, what] : std::vector<std::pair<std::vector<std::string>, const char*>>{
           {{"plan"}, "say what to plan"},
           {{"plan", "--scaling", "base.toml"}, "--world-size is missing"},
           {{"plan", "--scaling", "--world-size", "2"}, "how long a micro-batch takes"},
           {{"plan", "--scaling", "none.toml", "--world-size", "2"}, "none.toml"},
           {{"plan", "--scaling", "base.toml", "--world-size", "0"}, "--world-size"}}) {
    const auto outcome = lab.run(words);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_TRUE(has(outcome.err, what)) << outcome.err;
  }
}

TEST(PlanCommand, PrintsThePublishedFigures) {
  const auto outcome = Program().run({"plan", "--published"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(has(outcome.out, "| 44.7 |")) << outcome.out;
}

TEST(CheckCommand, FindingsHaveCodeKeyPlaceReasonSourceAndFix) {
  const PlanLab lab;
  const auto outcome =
      lab.run({"check", "base.toml", "train.update_freq=64", "schedule.warmup_steps=0", "--json"});
  EXPECT_EQ(outcome.code, 2);  // the data is missing
  EXPECT_TRUE(has(outcome.err, "no file")) << outcome.err;
  const auto json = Json::parse(outcome.out);
  EXPECT_EQ(json["sound"], false);
  EXPECT_EQ(json["errors"].size(), 4u);
  EXPECT_FALSE(json.contains("config_hash"));
  ASSERT_GE(json["findings"].size(), 1u);
  const auto& finding = json["findings"][0];
  EXPECT_EQ(finding["code"], "LB002");
  EXPECT_EQ(finding["key"], "schedule.warmup_steps");
  EXPECT_EQ(finding["place"], "command line, `schedule.warmup_steps=0`");
  EXPECT_TRUE(has(finding["source"], "Goyal"));
  EXPECT_FALSE(finding["reason"].get<std::string>().empty());
  EXPECT_FALSE(finding["fix"].get<std::string>().empty());
}

TEST(CheckCommand, StrictLeavesWithAnErrorAndProcessesAddTheirNotes) {
  const PlanLab lab;
  const std::vector<std::string> words{"check",
                                       "base.toml",
                                       "data.train_src=base.toml",
                                       "data.train_tgt=base.toml",
                                       "data.valid_src=base.toml",
                                       "data.valid_tgt=base.toml"};
  // The file is far too short for its batch: LB010.
  auto strict = words, uneven = words;
  strict.push_back("--strict");
  uneven.insert(uneven.end(), {"--processes", "3", "--json"});
  EXPECT_EQ(lab.run(words).code, 0);
  EXPECT_EQ(lab.run(strict).code, 2);
  const auto json = Json::parse(lab.run(uneven).out);
  EXPECT_EQ(json["sound"], true);
  EXPECT_EQ(json["config_hash"].get<std::string>().size(), 16u);
  EXPECT_EQ(json["findings"].back()["code"], "DP003");
}

}  // namespace
}  // namespace stretto
