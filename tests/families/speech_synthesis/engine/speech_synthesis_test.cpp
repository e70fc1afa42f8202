#include "families/speech_synthesis/engine/speech_synthesis.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "audio/audio_file.h"
#include "base/file.h"
#include "engine/commands.h"
#include "experiment/load_experiment.h"
#include "families/speech_synthesis/engine/speech_synthesis_family.h"
#include "families/speech_synthesis/requests.h"
#include "nn/batch_norm.h"
#include "report/html_report.h"
#include "report/report_data.h"
#include "store/checkpoint.h"
#include "tests/base/failure.h"
#include "tests/base/standard_output.h"
#include "tests/distributed/thread_group.h"
#include "tests/families/speech_synthesis/small_clips.h"
#include "tests/tasks/listed_scores.h"

namespace stretto::tasks {
namespace {

namespace fs = std::filesystem;
using stretto::testing::failure;

using Words = std::vector<std::string>;

class SpeechSynthesisTest : public ::testing::Test {
 protected:
  SpeechSynthesisTest() {
    testing::put_clips(folder_, "train", testing::small_words(12));
    testing::put_clips(folder_, "valid", testing::small_words(4, 40));
  }

  experiment::LoadedExperiment load(const Words& overrides = {}) const {
    return experiment::load_experiment(recipe_, overrides);
  }
  std::string run(const std::string& name) const { return (folder_ / name).string(); }
  int train(const std::string& name, const Words& overrides = {}, int64_t until = 0) const {
    return engine::run_train(
        {.experiment = load(overrides), .run_directory = run(name), .until = until});
  }
  std::unique_ptr<FamilyTask> task(const Words& overrides = {},
                                   const distributed::ProcessGroup& group = {}) const {
    const auto loaded = load(overrides);
    const auto& family = speech_synthesis_family();
    return family.make_task(loaded.options, family.first_assets(loaded), {.group = group});
  }
  /// Every tensor of the last checkpoint.
  std::map<std::string, std::string> saved(const std::string& name) const {
    const store::CheckpointStore checkpoints(run(name));
    const auto loaded =
        store::CheckpointStore::load(checkpoints.path_of(checkpoints.steps().back()));
    std::map<std::string, std::string> tensors;
    for (const auto& [stem, file] : loaded.files) {
      for (const auto& tensor : file.tensors()) {
        tensors[stem + ":" + tensor.name] = std::string(tensor.bytes);
      }
    }
    return tensors;
  }
  nlohmann::json scores(const std::string& name, const Words& overrides = {},
                        const std::string& predictions = "") const {
    return nlohmann::json::parse(stretto::testing::standard_output_of([&] {
      const EvalRequest request{.experiment = load(overrides),
                                .run_directory = run(name),
                                .checkpoint = "last",
                                .json = true,
                                .own = SynthesisEvalFiles{.predictions = predictions}};
      EXPECT_EQ(speech_synthesis_family().eval(request, {}), 0);
    }));
  }
  /// What `infer` prints for lines of text.
  Words answers(const std::string& name, const std::string& lines,
                const SynthesisInferArguments& own, const Words& overrides = {},
                bool json = true) const {
    const std::string said = stretto::testing::standard_output_of([&] {
      const InferRequest request{.experiment = load(overrides),
                                 .run_directory = run(name),
                                 .checkpoints = "last",
                                 .files = {folder_.write("lines.txt", lines)},
                                 .json = json,
                                 .own = own};
      EXPECT_EQ(speech_synthesis_family().infer(request, {}), 0);
    });
    Words found;
    for (size_t at = 0, end; (end = said.find('\n', at)) != std::string::npos; at = end + 1) {
      found.push_back(said.substr(at, end - at));
    }
    return found;
  }
  double loss_of(FamilyTask& task, const data::Batch& batch) const {
    return task.loss(task.prepare(batch), {}).losses.front().item<double>();
  }

  testing::TempDir folder_;
  const std::string recipe_ = folder_.write("words.toml", R"(
[run]
seed = 1
threads = 1
device = "cpu"
[task]
name = "speech_synthesis"
[data]
train = ["train.jsonl"]
valid = ["valid.jsonl"]
cache_dir = "cache"
batch_seconds = 1.5
[features]
rate = 8000
window_seconds = 0.032
hop_seconds = 0.016
num_mels = 16
high_hz = 0.0
[model]
name = "tacotron2"
reduction = 2
speaker_dim = 8
embedding_dim = 16
encoder_dim = 16
encoder_convolutions = 1
prenet_dim = 16
decoder_dim = 32
attention_dim = 16
location_filters = 4
location_kernel = 5
postnet_layers = 2
postnet_dim = 16
conv_dropout = 0.1
[loss]
guided_attention = 1.0
[decode]
max_seconds = 0.8
griffin_lim_iterations = 5
mel_iterations = 10
[optim]
name = "adam"
lr = 5e-3
[schedule]
name = "constant"
warmup_steps = 2
[train]
max_steps = 20
save_every = 10
[eval]
every = 10
[report]
every = 1
samples = 1
tensorboard = false
)");
};

TEST_F(SpeechSynthesisTest, LearnsFramesAndPrintsItsScores) {
  EXPECT_EQ(train("short", {"train.max_steps=1", "schedule.warmup_steps=0"}), 0);
  EXPECT_EQ(train("run"), 0);
  const auto first = scores("short"), last = scores("run");
  for (const char* name : {"loss", "mel_l1", "stop_error", "attention_diagonality"}) {
    ASSERT_TRUE(last.contains(name)) << name;
  }
  EXPECT_LT(last.at("loss").get<double>(), first.at("loss").get<double>());
  EXPECT_LT(last.at("mel_l1").get<double>(), first.at("mel_l1").get<double>());
  for (const char* share : {"stop_error", "attention_diagonality", "monotonic_steps"}) {
    EXPECT_GE(last.at(share).get<double>(), 0) << share;
    EXPECT_LE(last.at(share).get<double>(), 1) << share;
  }
  EXPECT_EQ(last.at("clips"), 4);
  EXPECT_EQ(last.at("unreadable_clips"), 0);
}

TEST_F(SpeechSynthesisTest, ARunInPartsEndsWithTheBitsOfAWholeOne) {
  const Words dithered{"features.dither=1e-4", "report.samples=0"};
  EXPECT_EQ(train("whole", dithered), 0);
  for (const int64_t until : {3, 10, 11, 0}) EXPECT_EQ(train("parts", dithered, until), 0);
  EXPECT_EQ(saved("parts"), saved("whole"));
}

TEST_F(SpeechSynthesisTest, ScoresOfAClipDoNotDependOnItsBatch) {
  EXPECT_EQ(train("run"), 0);
  const auto together = scores("run"), alone = scores("run", {"eval.batch_seconds=0.01"});
  for (const char* name : {"loss", "mel_l1", "attention_diagonality"}) {
    EXPECT_NEAR(together.at(name).get<double>(), alone.at(name).get<double>(), 1e-4) << name;
  }
  EXPECT_EQ(together.at("stop_error"), alone.at("stop_error"));
}

TEST_F(SpeechSynthesisTest, ProcessesShareAValidationAndGetTheSameScores) {
  const auto alone = task({"report.samples=0"});
  alone->model().eval();
  const auto want = alone->validate().scores;
  std::mutex lock;
  stretto::test::run_ranks(2, [&](const distributed::ProcessGroup& group) {
    std::unique_ptr<FamilyTask> made;
    {
      const std::scoped_lock guard(lock);
      made = task({"report.samples=0"}, group);
    }
    made->model().eval();
    const auto scores = made->validate().scores;
    const std::scoped_lock guard(lock);
    ASSERT_EQ(scores.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_NEAR(scores[i].value, want[i].value, 1e-6) << want[i].name;
    }
  });
}

TEST_F(SpeechSynthesisTest, ItsNumbersAreThoseOfItsList) {
  const auto loaded = load();
  const auto made = task();
  made->model().eval();
  expect_listed(made->validate(), loaded.options);
}

TEST_F(SpeechSynthesisTest, EachClipHasALineOfItsOwnNumbers) {
  EXPECT_EQ(train("run"), 0);
  const std::string path = (folder_ / "clips.tsv").string();
  scores("run", {}, path);
  const std::string table = read_file(path);
  EXPECT_TRUE(table.starts_with("clip\tframes\tloss\tmel_l1\tstop\tdiagonality\tmonotonic\ttext\n"))
      << table;
  EXPECT_NE(table.find("valid.jsonl:1\t"), std::string::npos) << table;
  EXPECT_EQ(std::ranges::count(table, '\n'), 5);
}

TEST_F(SpeechSynthesisTest, EachLineGetsASoundAndLinesWithoutTextAProblem) {
  EXPECT_EQ(train("run"), 0);
  const std::string sounds = (folder_ / "sounds").string();
  const auto lines = answers("run", "abc\n\ndefabc\n", {.output = sounds});
  ASSERT_EQ(lines.size(), 3U);
  const auto first = nlohmann::json::parse(lines[0]), second = nlohmann::json::parse(lines[1]);
  EXPECT_EQ(first.at("file"), sounds + "/00001.wav");
  EXPECT_EQ(second.at("problem"), "there is nothing to say");
  EXPECT_FALSE(fs::exists(sounds + "/00002.wav"));
  const auto info = audio::audio_info(sounds + "/00003.wav");
  EXPECT_EQ(info.rate, 8000);
  EXPECT_NEAR(info.seconds(), nlohmann::json::parse(lines[2]).at("seconds").get<double>(), 1e-4);
  for (const auto* name : {"stop", "text_end", "never"}) {
    if (first.at("end") == name) return;
  }
  ADD_FAILURE() << first.at("end");
}

TEST_F(SpeechSynthesisTest, ALineHasTheSameSoundInEveryBatch) {
  EXPECT_EQ(train("run"), 0);
  const auto sound = [&](const std::string& folder, const std::string& lines, const Words& words) {
    answers("run", lines, {.output = (folder_ / folder).string()}, words);
    return audio::read_audio(folder_ / folder / "00001.wav");
  };
  const auto alone = sound("alone", "abcde\n", {"decode.max_samples=1"});
  const auto together = sound("together", "abcde\nfab\nbcdefa\n", {});
  ASSERT_EQ(alone.size(), together.size());
  for (size_t i = 0; i < alone.size(); ++i) ASSERT_NEAR(alone[i], together[i], 1e-3) << i;
}

TEST_F(SpeechSynthesisTest, ASentenceThatNeverStopsIsCutAndReported) {
  EXPECT_EQ(train("run", {"train.max_steps=1", "schedule.warmup_steps=0"}), 0);
  const auto lines = answers("run", "abc\n", {.output = (folder_ / "sounds").string()},
                             {"decode.stop_threshold=0.999999", "decode.max_seconds=0.4"});
  ASSERT_EQ(lines.size(), 1U);
  const auto json = nlohmann::json::parse(lines[0]);
  EXPECT_EQ(json.at("end"), "never");
  EXPECT_NEAR(json.at("seconds").get<double>(), 0.4, 0.05);
}

TEST_F(SpeechSynthesisTest, TheBoundThatCutASentenceIsNamed) {
  EXPECT_EQ(train("run", {"train.max_steps=1", "schedule.warmup_steps=0"}), 0);
  const auto said = [&](const Words& bounds) {
    Words words{"decode.stop_threshold=0.999999"};
    words.insert(words.end(), bounds.begin(), bounds.end());
    ::testing::internal::CaptureStderr();
    answers("run", "abc\n", {.output = (folder_ / "sounds").string()}, words);
    return ::testing::internal::GetCapturedStderr();
  };
  const std::string first = said({"decode.max_seconds=0.4"});
  EXPECT_NE(first.find("(decode.max_seconds)"), std::string::npos) << first;
  EXPECT_EQ(first.find("of an earlier call"), std::string::npos) << first;
  const std::string second = said({"decode.max_seconds=9", "decode.max_seconds_per_symbol=0.1"});
  EXPECT_NE(second.find("(decode.max_seconds_per_symbol)"), std::string::npos) << second;
  EXPECT_NE(second.find("has 1 sound of an earlier call"), std::string::npos) << second;
}

TEST_F(SpeechSynthesisTest, OneFrameIsNoSound) {
  EXPECT_EQ(train("run", {"train.max_steps=1", "schedule.warmup_steps=0"}), 0);
  const std::string sounds = (folder_ / "sounds").string();
  const auto lines = answers("run", "abc\n", {.output = sounds},
                             {"decode.stop_threshold=0.999999", "decode.max_seconds=0.001"});
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(nlohmann::json::parse(lines[0]).contains("problem")) << lines[0];
  EXPECT_FALSE(fs::exists(sounds + "/00001.wav"));
}

TEST_F(SpeechSynthesisTest, SpeakersHaveVectorsAndNames) {
  std::vector<testing::SmallClip> clips;
  for (auto clip : testing::small_words(12)) {
    clip.speaker = clips.size() % 2 == 0 ? "deep" : "high";
    clips.push_back(clip);
  }
  const Words two{"data.train=[\"" + testing::put_clips(folder_, "two", clips) + "\"]",
                  "data.valid=[]"};
  EXPECT_EQ(train("two", two), 0);
  const std::string deep = (folder_ / "deep").string(), high = (folder_ / "high").string();
  answers("two", "abc\n", {.output = deep, .speaker = "deep"}, two);
  answers("two", "abc\n", {.output = high, .speaker = "high"}, two);
  EXPECT_NE(read_file(deep + "/00001.wav"), read_file(high + "/00001.wav"));
  const auto unknown = failure(ExitCode::kBadData, [&] {
    answers("two", "abc\n", {.output = deep, .speaker = "third"}, two);
  });
  EXPECT_NE(unknown.message().find("third"), std::string::npos) << unknown.message();
}

TEST_F(SpeechSynthesisTest, ARunOfOneSpeakerRefusesNamesAndStyles) {
  EXPECT_EQ(train("run", {"train.max_steps=1", "schedule.warmup_steps=0"}), 0);
  const std::string sounds = (folder_ / "sounds").string();
  failure(ExitCode::kUsage,
          [&] { answers("run", "abc\n", {.output = sounds, .speaker = "deep"}); });
  failure(ExitCode::kUsage, [&] {
    answers("run", "abc\n", {.output = sounds, .style = (folder_ / "train_0.wav").string()});
  });
}

TEST_F(SpeechSynthesisTest, AStyleIsThatOfASound) {
  const Words styled{"model.style.num_tokens=4", "model.style.num_heads=2", "model.style.dim=8",
                     "model.style.reference_dim=8"};
  EXPECT_EQ(train("run", styled), 0);
  const std::string mean = (folder_ / "mean").string(), one = (folder_ / "one").string();
  answers("run", "abc\n", {.output = mean}, styled);
  answers("run", "abc\n", {.output = one, .style = (folder_ / "train_0.wav").string()}, styled);
  EXPECT_NE(read_file(mean + "/00001.wav"), read_file(one + "/00001.wav"));
}

TEST_F(SpeechSynthesisTest, MagnitudesTrainAndSpeak) {
  for (const std::string spectrum : {"both", "magnitude"}) {
    const Words words{"model.spectrum=\"" + spectrum + "\"", "train.max_steps=3"};
    EXPECT_EQ(train(spectrum, words), 0);
    const std::string sounds = (folder_ / (spectrum + "_sounds")).string();
    EXPECT_EQ(answers(spectrum, "abc\n", {.output = sounds}, words, /*json=*/false),
              Words{sounds + "/00001.wav"});
  }
}

TEST_F(SpeechSynthesisTest, TheReportHasPlayersPicturesAndAttention) {
  EXPECT_EQ(train("run"), 0);
  report::ReportContent content;
  report::read_report_data(fs::path(run("run")) / report::kReportDataFile, content);
  ASSERT_EQ(content.samples.size(), 5U);
  Words kinds;
  for (const auto& one : content.samples) {
    const auto& sample = std::get<report::MediaSample>(one);
    EXPECT_FALSE(sample.bytes.empty()) << sample.note;
    kinds.push_back(sample.mime);
  }
  EXPECT_EQ(kinds, (Words{"audio/wav", "image/png", "image/png", "audio/wav", "image/png"}));
  EXPECT_EQ(std::get<report::MediaSample>(content.samples[0]).rows[0].first,
            "Attention diagonality");
}

/// Weights that are finite, and frames that are not.
void overflow(torch::nn::Module& model, const Words& parameters) {
  const at::NoGradGuard no_grad;
  auto all = model.named_parameters();
  for (const std::string& name : parameters) all[name].fill_(3e38);
}

TEST_F(SpeechSynthesisTest, AValidationOfFramesThatOverflowHasScoresAndNoSamples) {
  const auto made = task();
  overflow(made->model(), {"postnet.convolution1.weight", "postnet.norm1.weight"});
  made->model().eval();
  const auto found = made->validate();
  EXPECT_TRUE(found.samples.empty());
  EXPECT_FALSE(std::isfinite(found.scores.front().value));
}

TEST_F(SpeechSynthesisTest, ALineWhoseFramesOverflowIsNamed) {
  EXPECT_EQ(train("run", {"train.max_steps=1", "data.valid=[]", "optim.lr=1e30",
                          "schedule.warmup_steps=0"}),
            0);
  const auto error = failure(ExitCode::kNumeric, [&] {
    answers("run", "\nabc\nde\n", {.output = (folder_ / "sounds").string()}, {"data.valid=[]"});
  });
  EXPECT_NE(error.message().find("lines.txt:2"), std::string::npos) << error.message();
  EXPECT_FALSE(fs::exists(folder_ / "sounds/00002.wav"));
}

TEST_F(SpeechSynthesisTest, AClipThatVanishesIsLeftOutOfTheLossAndCounted) {
  const auto made = task();
  const data::Batch batch = made->train_batches().load_for_training(0, 0);
  ASSERT_GE(batch.num_sequences(), 2);
  const auto whole = made->prepare(batch);
  fs::remove(folder_ / ("train_" + std::to_string(batch.sample_ids[0]) + ".wav"));
  const auto rest = made->prepare(batch);
  EXPECT_LT(made->weights(rest).front(), made->weights(whole).front());
  const auto sums = made->loss(rest, {});
  EXPECT_EQ(sums.counts[1], batch.num_sequences());
  EXPECT_EQ(sums.counts[2], 1);
  EXPECT_EQ(static_cast<double>(sums.counts[0]), made->weights(rest).front());
}

TEST_F(SpeechSynthesisTest, ABatchWithoutAnyClipHasALossOfZeroAndAGradientForAll) {
  const auto made = task();
  const data::Batch batch = made->train_batches().load_for_training(0, 0);
  for (const int64_t clip : batch.sample_ids) {
    fs::remove(folder_ / ("train_" + std::to_string(clip) + ".wav"));
  }
  const auto prepared = made->prepare(batch);
  EXPECT_EQ(made->weights(prepared).front(), 0);
  const auto sums = made->loss(prepared, {});
  EXPECT_EQ(sums.losses.front().item<double>(), 0);
  sums.losses.front().backward();
  for (const auto& parameter : made->model().parameters()) {
    EXPECT_TRUE(!parameter.requires_grad() || parameter.grad().defined());
  }
}

TEST_F(SpeechSynthesisTest, AProcessWithoutAnyClipTakesPartInTheNormsOfAll) {
  const auto made = task({"model.spectrum=\"both\"", "model.style.num_tokens=4",
                          "model.style.num_heads=2", "model.style.dim=8"});
  std::vector<size_t> calls;  // numbers of each
  for (auto* norm : nn::batch_norms(made->model())) {
    norm->synchronise([&](std::span<double> numbers) {
      calls.push_back(numbers.size());
      if (numbers.size() % 2 == 1) numbers.back() += 8;  // rows of another process
    });
  }
  const data::Batch batch = made->train_batches().load_for_training(0, 0);
  const auto calls_of_a_pass = [&] {
    calls.clear();
    made->loss(made->prepare(batch), {}).losses.front().backward();
    return calls;
  };
  const auto others = calls_of_a_pass();
  EXPECT_FALSE(others.empty());
  for (const int64_t clip : batch.sample_ids) {
    fs::remove(folder_ / ("train_" + std::to_string(clip) + ".wav"));
  }
  EXPECT_EQ(calls_of_a_pass(), others);
}

TEST_F(SpeechSynthesisTest, AnotherRunsModelAndVoiceAreTaken) {
  EXPECT_EQ(train("first"), 0);
  const Words same{"train.init_from=\"" + run("first") + "\"", "train.max_steps=1",
                   "schedule.warmup_steps=0"};
  EXPECT_EQ(train("same", same), 0);
  experiment::Preflight found;
  speech_synthesis_family().check_weights({.experiment = load(same), .weights = true}, found);
  EXPECT_TRUE(found.stops.empty()) << found.stops.front().what;
}

}  // namespace
}  // namespace stretto::tasks
