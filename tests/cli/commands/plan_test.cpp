#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "tests/cli/program.h"

namespace stretto {
namespace {

using Json = nlohmann::json;
using stretto::testing::has;
using stretto::testing::Program;

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

/// What asks for the size of a model asks the engine.
class PlanOfAModel : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!Program::has_engine()) GTEST_SKIP() << "this build has no libtorch";
  }
};

TEST_F(PlanOfAModel, CountsTheModelAndPredictsUpToTheWorldSize) {
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

TEST_F(PlanOfAModel, KnowsRecurrentAndConvolutionalParts) {
  const PlanLab lab;
  for (const std::string part : {"lstm", "conv", "light_conv", "dynamic_conv"}) {
    const auto plan = lab.plan({"base.toml", "model.encoder.name=" + part,
                                "model.decoder.name=" + part, "--world-size", "2"});
    EXPECT_GT(plan["inputs"]["parameters"], 32768 * 512) << part;
    EXPECT_NE(plan["inputs"]["parameters"], 60'915'712) << part;
    EXPECT_EQ(plan["inputs"]["compute_source"], "estimated from operations") << part;
    EXPECT_GT(plan["inputs"]["compute_seconds"], 0) << part;
  }
}

/// A vocabulary file of so many tokens, of which one has a count, with a special and an empty line.
std::string tokens_of_file(int count) {
  std::string text = "<s>\nt0 17\n\n";
  for (int i = 1; i < count; ++i) text += "t" + std::to_string(i) + "\n";
  return text;
}

TEST_F(PlanOfAModel, CountsTheRowsThatTheFilesOfTheTokenizerGive) {
  const PlanLab lab;
  lab.folder.write("small.txt", tokens_of_file(20));
  lab.folder.write("large.txt", tokens_of_file(33));
  const auto plan = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"base.toml", "--world-size", "2", "tokenizer.type=vocab",
                                 "model.tie_embeddings=decoder"});
    return lab.plan(words);
  };
  const auto parameters = [](const Json& json) {
    return json["inputs"]["parameters"].get<int64_t>();
  };
  const std::string src = "tokenizer.src_vocab=small.txt";
  const Json joint = plan({src});
  EXPECT_FALSE(has(joint["assumed"].dump(), "the vocabulary has")) << joint["assumed"];
  // 20 tokens and 4 specials, which are a multiple of 8.
  EXPECT_EQ(parameters(joint), parameters(plan({src, "--vocab-rows", "24"})));
  // 37, rounded up to 40.
  EXPECT_EQ(parameters(plan({src, "tokenizer.tgt_vocab=large.txt"})),
            parameters(joint) + (40 - 24) * 512);
  const Json guessed = plan({"tokenizer.src_vocab=no.txt"});
  EXPECT_TRUE(has(guessed["assumed"].dump(),
                  "the vocabulary has 32,768 rows, as tokenizer.vocab_size says, since its file is "
                  "not here (--vocab-rows)"))
      << guessed["assumed"];
  EXPECT_EQ(parameters(guessed),
            parameters(plan({"tokenizer.src_vocab=no.txt", "--vocab-rows", "32768"})));
}

std::set<std::string> keys_of(const Json& object) {
  std::set<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.insert(key);
  return keys;
}

TEST_F(PlanOfAModel, TheFieldsAreThoseOfTheManual) {
  const auto plan = PlanLab().plan({"base.toml", "--world-size", "20"});
  const std::set<std::string> numbers{"compute_seconds", "communication_seconds",
                                      "exposed_seconds", "step_seconds",
                                      "limit_seconds",   "tokens_per_second",
                                      "speedup",         "efficiency",
                                      "latency_seconds", "buckets"};
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
                                     "first_share",
                                     "late_share",
                                     "row_bytes",
                                     "strategy",
                                     "algorithm",
                                     "compress",
                                     "device",
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

TEST(PlanCommand, CountsTokensOfEveryFamily) {
  const auto help = Program().run({"plan", "--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_TRUE(has(help.out, "--tokens")) << help.out;
  EXPECT_FALSE(has(help.out, "target tokens")) << help.out;
}

TEST(PlanCommand, LeavesOutWhatIsNotKnown) {
  const auto plan = PlanLab().plan(
      {"--compute-ms", "100", "--gradient-mb", "100", "--world-size", "2", "--link-gbit", "8"});
  EXPECT_FALSE(plan.contains("tokens_per_second"));
  for (const char* name : {"parameters", "compress", "device"}) {
    EXPECT_FALSE(plan["inputs"].contains(name)) << name;
  }
  EXPECT_EQ(plan["inputs"]["weak"], true);
  EXPECT_EQ(plan["inputs"]["compute_source"], "given");
}

TEST(PlanCommand, NeedsNoConfigurationForAMeasuredMicroBatch) {
  const auto plan = PlanLab().plan({"--compute-ms", "100", "--gradient-mb", "100", "--link-gbit",
                                    "8", "--latency-us", "0", "--world-size", "2", "--no-overlap",
                                    "--bucket-mb", "2"});
  EXPECT_TRUE(plan["assumed"].empty()) << plan["assumed"];
  EXPECT_NEAR(plan["communication_seconds"].get<double>(), 0.1, 1e-12);
  EXPECT_NEAR(plan["step_seconds"].get<double>(), 0.2, 1e-12);
  EXPECT_NEAR(plan["efficiency"].get<double>(), 0.5, 1e-12);
}

TEST_F(PlanOfAModel, CompressionAndOverridesChangeWhatIsSent) {
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

TEST_F(PlanOfAModel, AutomaticBucketsAreThoseOfWhatCarriesThem) {
  const PlanLab lab;
  const auto bytes = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"base.toml", "--world-size", "2", "--compute-ms", "100"};
    words.insert(words.end(), more.begin(), more.end());
    return lab.plan(words)["inputs"]["bucket_bytes"].get<double>();
  };
  const double mpi = 2 * 1024 * 1024, nccl = 25 * 1024 * 1024;
  EXPECT_EQ(bytes({}), mpi);
  EXPECT_EQ(bytes({"--device", "cpu"}), mpi);
  EXPECT_EQ(bytes({"--device", "cuda"}), nccl);
  EXPECT_EQ(bytes({"run.device=cuda"}), nccl);
  EXPECT_EQ(bytes({"dist.backend=nccl"}), nccl);
  EXPECT_EQ(bytes({"--device", "cuda", "dist.bucket_bytes=8192"}), 8192);
  EXPECT_EQ(bytes({"--device", "cuda", "--bucket-mb", "1"}), 1e6);
  const std::vector<std::string> bare{"--compute-ms", "100",          "--gradient-mb",
                                      "100",          "--world-size", "2"};
  auto gpu = bare;
  gpu.insert(gpu.end(), {"--device", "cuda"});
  const auto unknown = lab.plan(bare);
  EXPECT_EQ(unknown["inputs"]["bucket_bytes"], mpi);
  EXPECT_TRUE(has(unknown["assumed"].dump(), "buckets of 2 MiB")) << unknown["assumed"];
  EXPECT_EQ(lab.plan(gpu)["inputs"]["bucket_bytes"], nccl);
  EXPECT_FALSE(has(lab.plan(gpu)["assumed"].dump(), "buckets of"));
}

TEST_F(PlanOfAModel, SaysWhenMostIsLatencyOfBuckets) {
  const PlanLab lab;
  std::vector<std::string> words{
      "plan",       "--scaling", "base.toml",   "--world-size", "64",           "--device", "cuda",
      "--per-host", "8",         "--link-gbit", "60",           "--latency-us", "5"};
  const std::string line = "on 64 processes most of the communication is latency of ";
  EXPECT_FALSE(has(lab.run(words).out, line));
  words.insert(words.end(), {"--bucket-mb", "1"});
  const auto out = lab.run(words).out;
  // 4 * 60,915,712 bytes
  EXPECT_TRUE(has(out, line + "244 buckets: a larger dist.bucket_bytes would help")) << out;
}

TEST_F(PlanOfAModel, TheManualsSpeedUpsByBucketsAreFresh) {
  const auto source = std::filesystem::path(STRETTO_SOURCE_DIR);
  const auto page = read_file(source / "docs" / "scaling.md");
  const auto config = (source / "configs/translation/wmt16_en_de_big.toml").string();
  for (const char* buckets : {"dist.bucket_bytes=0", "dist.bucket_bytes=2097152"}) {
    const auto plan =
        PlanLab().plan({config, buckets, "--device", "cuda", "--world-size", "128", "--compute-ms",
                        "120", "--per-host", "8", "--link-gbit", "60", "--latency-us", "5"});
    const std::string said = "speed-up of " + fixed(plan["speedup"].get<double>(), 1);
    EXPECT_TRUE(has(page, said)) << buckets << ": " << said;
  }
}

TEST_F(PlanOfAModel, ATiedTableLeavesFirstWhereItsRowsAreSummedApart) {
  const PlanLab lab;
  const double table = 32768.0 * 512 / 60'915'712;
  const auto inputs = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"base.toml", "--world-size", "2",   "--compute-ms",
                                   "100",       "--tokens",     "1000"};
    words.insert(words.end(), more.begin(), more.end());
    return lab.plan(words)["inputs"];
  };
  for (const std::vector<std::string>& cpu :
       {std::vector<std::string>{}, {"--device", "cpu"}, {"run.device=cpu"}}) {
    const auto apart = inputs(cpu);
    EXPECT_NEAR(apart["first_share"].get<double>(), table, 1e-9);
    EXPECT_EQ(apart["late_share"], 0.0);
    // 4 * 2000^0.7 = 818 rows of 512 numbers and an id
    EXPECT_EQ(apart["row_bytes"], 818 * (4.0 * 512 + 8));
    EXPECT_EQ(apart["device"], "cpu");
  }
  // Nowhere else.
  for (const std::vector<std::string>& other : {std::vector<std::string>{"--device", "cuda"},
                                                {"run.device=cuda"},
                                                {"--no-overlap"},
                                                {"dist.overlap=false"},
                                                {"dist.deterministic=true"},
                                                {"--strategy", "sharded"},
                                                {"dist.strategy=parameter_server"}}) {
    const auto whole = inputs(other);
    EXPECT_EQ(whole["first_share"], 0.0) << other.back();
    EXPECT_NEAR(whole["late_share"].get<double>(), table, 1e-9) << other.back();
    EXPECT_EQ(whole["row_bytes"], 0.0) << other.back();
  }
  const auto given = inputs({"--late-share", "0.9", "--row-mb", "3"});
  EXPECT_NEAR(given["first_share"].get<double>(), 0.1, 1e-9);
  EXPECT_EQ(given["row_bytes"], 3e6);
  const auto outcome = lab.run({"plan", "--scaling", "base.toml", "--world-size", "2",
                                "--first-share", "0.6", "--late-share", "0.6"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.err, "are more than 1")) << outcome.err;
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  for (const auto& cell : split(line, '|')) cells.emplace_back(trim(cell));
  return cells;
}

// docs/scaling.md, "Measured here": | step | compute ms | link | measured | model | error | …
TEST_F(PlanOfAModel, TheManualsTableOfWhatWasMeasuredIsFresh) {
  const auto source = std::filesystem::path(STRETTO_SOURCE_DIR);
  const auto config = (source / "configs/translation/multi30k_overlap.toml").string();
  const auto page = read_file(source / "docs" / "scaling.md");
  int rows = 0;
  for (const auto& line : split(page.substr(page.find("## Measured here")), '\n')) {
    const auto cells = cells_of(line);
    if (cells.size() != 10 || !cells[4].ends_with(" s")) continue;
    ++rows;
    std::vector<std::string> words{config, "--device", "cpu", "--per-host", "1", "--weak"};
    words.insert(words.end(), {"--world-size", has(line, "four processes") ? "4" : "2"});
    words.insert(words.end(), {"--compute-ms", cells[2], "--link-gbit", cells[3]});
    if (has(line, "without overlap")) words.emplace_back("--no-overlap");
    if (has(line, "bf16")) words.insert(words.end(), {"--compress", "bf16"});
    if (has(line, "3,072 tokens")) words.insert(words.begin() + 1, "data.max_tokens=3072");
    const double measured = std::stod(cells[4]);
    for (const size_t model : {5, 7}) {
      const double seconds = PlanLab().plan(words)["step_seconds"];
      EXPECT_EQ(cells[model], fixed(seconds, 3) + " s") << line;
      EXPECT_EQ(std::stoi(cells[model + 1]), std::lround(100 * (seconds / measured - 1))) << line;
      words.insert(words.end(), {"--overlap-cost", "0.24"});
    }
  }
  EXPECT_EQ(rows, 14);
}

TEST_F(PlanOfAModel, NamesStrategyAlgorithmAndCompression) {
  const PlanLab lab;
  const std::vector<std::string> words{"base.toml", "--world-size", "2", "--compute-ms", "100"};
  auto inputs = lab.plan(words)["inputs"];
  EXPECT_EQ(inputs["strategy"], "all_reduce");
  EXPECT_EQ(inputs["algorithm"], "ring");
  EXPECT_EQ(inputs["compress"], "none");
  auto others = words;
  others.insert(others.begin() + 1, {"dist.strategy=sharded", "dist.compress=bf16"});
  others.insert(others.end(), {"--algorithm", "halving_doubling"});
  inputs = lab.plan(others)["inputs"];
  EXPECT_EQ(inputs["strategy"], "sharded");
  EXPECT_EQ(inputs["algorithm"], "halving_doubling");
  EXPECT_EQ(inputs["compress"], "bf16");
  others.insert(others.end(), {"--strategy", "parameter_server"});
  EXPECT_EQ(lab.plan(others)["inputs"]["strategy"], "parameter_server");
}

TEST_F(PlanOfAModel, SaysWhatItAssumed) {
  const auto outcome = PlanLab().run({"plan", "--scaling", "base.toml", "--world-size", "16"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* word : {"60,915,712 parameters", "assumed: a process computes 50 GFLOP/s",
                           "assumed: 8 processes on a host", "--link-gbit", "efficiency",
                           "assumed: processes compute on CPUs (--device)", "--row-mb",
                           "\nall_reduce as a ring, while backward runs\n"}) {
    EXPECT_TRUE(has(outcome.out, word)) << word << "\n" << outcome.out;
  }
}

TEST_F(PlanOfAModel, AMicroBatchOfFewSamplesHasFewTokens) {
  const PlanLab lab;
  const auto planned = [&](const std::string& config, std::vector<std::string> more) {
    more.insert(more.begin(), config);
    more.insert(more.end(), {"--world-size", "1"});
    return lab.plan(more);
  };
  const auto expect = [](const Json& plan, double tokens, const std::string& assumed) {
    EXPECT_NEAR(plan["inputs"]["tokens_per_micro_batch"].get<double>(), tokens, 1e-9);
    EXPECT_EQ(plan["assumed"][0], assumed + " (--tokens)");
  };
  const std::string filled = "0.9 of data.max_tokens are ",
                    earlier = ", though data.max_samples may end a micro-batch earlier";
  expect(planned("base.toml", {}), 0.9 * 4096, filled + "target tokens");
  expect(planned("base.toml", {"data.max_samples=32"}), 800,
         "a micro-batch has data.max_samples = 32 samples of 25 target tokens");
  expect(planned("base.toml", {"data.max_samples=32", "data.max_tgt_tokens=20"}), 640,
         "a micro-batch has data.max_samples = 32 samples of 20 target tokens");
  expect(planned("base.toml", {"data.max_samples=1000"}), 0.9 * 4096,
         filled + "target tokens" + earlier);
  EXPECT_EQ(planned("base.toml",
                    {"data.max_samples=32", "--tokens", "700"})["inputs"]["tokens_per_micro_batch"],
            700);
  const auto full = planned("base.toml", {"--gflops", "50"}),
             half = planned("base.toml", {"--gflops", "50", "data.max_samples=32"});
  EXPECT_NEAR(half["inputs"]["compute_seconds"].get<double>() /
                  full["inputs"]["compute_seconds"].get<double>(),
              800 / (0.9 * 4096), 1e-9);
  // How long texts are is not known.
  const auto labels =
      (std::filesystem::path(STRETTO_SOURCE_DIR) / "configs/smoke/text_classification.toml")
          .string();
  const std::string most = "data.max_text_tokens=40";
  expect(planned(labels, {most, "data.max_samples=16"}), 640,
         "a micro-batch has data.max_samples = 16 samples of 40 tokens, as many as "
         "data.max_text_tokens lets in");
  expect(planned(labels, {most, "data.max_samples=32"}), 0.9 * 1024, filled + "tokens" + earlier);
}

TEST_F(PlanOfAModel, TakesTheThroughputOfARun) {
  const PlanLab lab;
  // A run's own configuration: two micro-batches an update.
  lab.write_run(lab.run({"check", "base.toml", "train.update_freq=2", "data.train_src=base.toml",
                         "data.train_tgt=base.toml", "data.valid_src=base.toml",
                         "data.valid_tgt=base.toml", "--resolved"})
                    .out);
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
  std::string shared = event(1, 4000, 10) + event(2, 4000, 1000);
  shared.insert(shared.rfind('}'), ",\"processes\":4");
  lab.folder.write("run/metrics.jsonl", shared);
  const auto several = lab.run({"plan", "--scaling", "--run", "run", "--world-size", "2"});
  EXPECT_EQ(several.code, 2);
  EXPECT_TRUE(has(several.err, "was trained by 4 processes")) << several.err;
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
  // The text is too short to train a tokenizer of the size that the file asks for.
  lab.folder.write("words.txt", "[data]\n[train]\n=\n");
  const std::vector<std::string> words{"check",
                                       "base.toml",
                                       "data.train_src=base.toml",
                                       "data.train_tgt=base.toml",
                                       "data.valid_src=base.toml",
                                       "data.valid_tgt=base.toml",
                                       "tokenizer.type=vocab",
                                       "tokenizer.src_vocab=words.txt",
                                       "data.max_unknown=1",
                                       "loss.label_smoothing=0"};
  // The file is far too short for its batch: LB010.
  auto strict = words, uneven = words;
  strict.push_back("--strict");
  uneven.insert(uneven.end(), {"train.update_freq=2", "--processes", "3", "--json"});
  EXPECT_EQ(lab.run(words).code, 0);
  EXPECT_EQ(lab.run(strict).code, 2);
  const auto json = Json::parse(lab.run(uneven).out);
  EXPECT_EQ(json["sound"], true);
  EXPECT_EQ(json["config_hash"].get<std::string>().size(), 16u);
  EXPECT_EQ(json["findings"].back()["code"], "DP003");
}

}  // namespace
}  // namespace stretto
