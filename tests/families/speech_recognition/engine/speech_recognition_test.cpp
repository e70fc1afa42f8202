#include "families/speech_recognition/engine/speech_recognition.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <torch/torch.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "audio/wave_writer.h"
#include "base/file.h"
#include "engine/commands.h"
#include "experiment/load_experiment.h"
#include "families/speech_recognition/engine/speech_recognition_family.h"
#include "families/speech_recognition/requests.h"
#include "report/metrics_log.h"
#include "report/report_data.h"
#include "store/checkpoint.h"
#include "tests/base/failure.h"
#include "tests/base/standard_output.h"
#include "tests/distributed/thread_group.h"
#include "tests/families/speech_recognition/toned_words.h"
#include "tests/tasks/listed_scores.h"

namespace stretto::tasks {
namespace {

namespace fs = std::filesystem;
using stretto::testing::failure;

using Words = std::vector<std::string>;

constexpr const char* kConvolutions = R"(
[model]
name = "wave2letter"
preset = "none"
[[model.blocks]]
channels = 48
kernel = 7
stride = 2
[[model.blocks]]
channels = 64
kernel = 5
)";

class SpeechRecognitionTest : public ::testing::Test {
 protected:
  SpeechRecognitionTest() {
    testing::put_toned_words(folder_, "train", 24);
    valid_texts_ = testing::put_toned_words(folder_, "valid", 6, 40);
  }

  std::string recipe(const std::string& model) const {
    return folder_.write("speech.toml", R"(
[run]
seed = 1
threads = 1
device = "cpu"
[task]
name = "speech_recognition"
[data]
train = ["train.csv"]
valid = ["valid.csv"]
cache_dir = "cache"
batch_seconds = 3
bucket_seconds = 0.1
[features]
rate = 8000
num_mels = 24
[optim]
name = "adam"
lr = 0.01
[schedule]
name = "constant"
warmup_steps = 2
[train]
max_steps = 240
save_every = 120
[eval]
every = 120
[report]
every = 1
samples = 2
tensorboard = false
)" + model);
  }

  experiment::LoadedExperiment load(const Words& overrides = {}) const {
    return experiment::load_experiment(recipe(model_), overrides);
  }
  std::string run(const std::string& name) const { return (folder_ / name).string(); }
  int train(const std::string& name, const Words& overrides = {}, int64_t until = 0) const {
    return engine::run_train(
        {.experiment = load(overrides), .run_directory = run(name), .until = until});
  }
  std::unique_ptr<FamilyTask> task(const Words& overrides = {},
                                   const distributed::ProcessGroup& group = {}) const {
    const auto loaded = load(overrides);
    const auto& family = speech_recognition_family();
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
                        const SpeechEvalFiles& files = {}) const {
    return nlohmann::json::parse(stretto::testing::standard_output_of([&] {
      EvalRequest request{.experiment = load(overrides),
                          .run_directory = run(name),
                          .checkpoint = "last",
                          .json = true};
      request.own.edit<SpeechEvalFiles>() = files;
      EXPECT_EQ(speech_recognition_family().eval(request, {}), 0);
    }));
  }
  Words answers(const std::string& name, const Words& files, bool json = false,
                const Words& overrides = {}, const SpeechInferArguments& asked = {}) const {
    const std::string said = stretto::testing::standard_output_of([&] {
      InferRequest request{.experiment = load(overrides),
                           .run_directory = run(name),
                           .checkpoints = "last",
                           .files = files,
                           .json = json};
      request.own.edit<SpeechInferArguments>() = asked;
      EXPECT_EQ(speech_recognition_family().infer(request, {}), 0);
    });
    Words lines;
    for (size_t at = 0, end; (end = said.find('\n', at)) != std::string::npos; at = end + 1) {
      lines.push_back(said.substr(at, end - at));
    }
    return lines;
  }
  static double loss_of(FamilyTask& task, const data::Batch& batch) {
    return task.loss(task.prepare(batch), {}).losses.front().item<double>();
  }

  testing::TempDir folder_;
  std::string model_ = kConvolutions;
  Words valid_texts_;
};

TEST_F(SpeechRecognitionTest, LearnsToReadWords) {
  EXPECT_EQ(train("run"), 0);
  const auto json = scores("run");
  EXPECT_LT(json.at("wer"), 20.0);
  EXPECT_LE(json.at("cer"), json.at("wer"));
  EXPECT_EQ(json.at("utterances"), 6);
  EXPECT_EQ(json.at("unreadable_utterances"), 0);
}

TEST_F(SpeechRecognitionTest, ARunInPartsEndsWithTheBitsOfAWholeOne) {
  const Words mixed{"augment.speeds=[0.9, 1.1]", "augment.time_masks=1", "train.max_steps=12",
                    "train.save_every=5"};
  EXPECT_EQ(train("whole", mixed), 0);
  for (const int64_t until : {3, 5, 9, 0}) EXPECT_EQ(train("parts", mixed, until), 0);
  EXPECT_EQ(saved("parts"), saved("whole"));
}

TEST_F(SpeechRecognitionTest, TheLossIsTheSumOfThatOfEachUtterance) {
  model_ = R"(
[model]
name = "conformer"
preset = "none"
num_layers = 1
d_model = 32
num_heads = 2
ffn_dim = 64
kernel = 3
subsampling_factor = 2
convolution_norm = "layer_norm"
)";
  for (const char* unit : {"labels", "utterances"}) {
    const auto made = task({std::string("loss.divided_by=") + unit});
    const data::Batch batch = made->train_batches().load_for_training(0, 0);
    double parts = 0, weights = 0;
    for (int64_t i = 0; i < batch.num_sequences(); ++i) {
      const data::Batch one = data::part(batch, i, i + 1);
      parts += loss_of(*made, one);
      weights += made->weights(one).front();
    }
    EXPECT_NEAR(parts, loss_of(*made, batch), 1e-3 * std::abs(parts));
    EXPECT_EQ(weights, made->weights(batch).front());
  }
}

TEST_F(SpeechRecognitionTest, TheLossIsTorchsCtc) {
  const auto made = task();
  const data::Batch batch = made->train_batches().load_for_training(0, 0);
  auto& model = dynamic_cast<models::SpeechModel&>(made->model());
  model.eval();
  const auto prepared = made->prepare(batch);
  const auto encoded = model.encode(prepared.rows(kFrameRows), {});
  const at::Tensor scores = model.ctc_scores(encoded);
  const at::Tensor offsets = encoded.rows.offsets.values.to(at::kLong);
  const auto& targets = prepared.rows(kTargetRows);
  double want = 0;
  for (int64_t i = 0; i < batch.num_sequences(); ++i) {
    const auto begin = offsets[i].item<int64_t>(), end = offsets[i + 1].item<int64_t>();
    const at::Tensor labels = targets.ids.slice(0, targets.offsets.values[i].item<int64_t>(),
                                                targets.offsets.values[i + 1].item<int64_t>());
    want += torch::nn::functional::ctc_loss(
                scores.slice(0, begin, end).to(at::kDouble).log_softmax(1).unsqueeze(1),
                labels.unsqueeze(0), at::tensor({end - begin}), at::tensor({labels.size(0)}),
                torch::nn::functional::CTCLossFuncOptions()
                    .blank(model.num_labels())
                    .reduction(torch::kSum))
                .item<double>();
  }
  const auto losses = model.losses(encoded, targets, {});
  EXPECT_NEAR(losses.each.sum().item<double>(), want, 1e-3 * want);
}

TEST_F(SpeechRecognitionTest, ProcessesShareAValidationAndGetTheSameScores) {
  const Words words{"eval.batch_seconds=1"};
  const auto alone = task(words);
  alone->model().eval();
  const auto validation = alone->validate();
  expect_listed(validation, load(words).options);
  std::mutex lock;
  stretto::test::run_ranks(2, [&](const distributed::ProcessGroup& group) {
    std::unique_ptr<FamilyTask> made;
    {
      const std::scoped_lock guard(lock);
      made = task(words, group);
    }
    made->model().eval();
    const auto scores = made->validate().scores;
    const std::scoped_lock guard(lock);
    ASSERT_EQ(scores.size(), validation.scores.size());
    for (size_t i = 0; i < scores.size(); ++i) {
      EXPECT_NEAR(scores[i].value, validation.scores[i].value, 1e-6) << scores[i].name;
    }
  });
}

TEST_F(SpeechRecognitionTest, ScoresAndTextsDoNotDependOnWhatIsInABatch) {
  EXPECT_EQ(train("run"), 0);
  const auto together = scores("run"), alone = scores("run", {"eval.batch_seconds=0.1"});
  EXPECT_NEAR(together.at("loss").get<double>(), alone.at("loss").get<double>(), 1e-5);
  EXPECT_EQ(together.at("wer"), alone.at("wer"));
  EXPECT_EQ(together.at("cer"), alone.at("cer"));
  Words files, turned;
  for (int i = 0; i < 6; ++i) {
    files.push_back((folder_ / ("valid_" + std::to_string(i) + ".wav")).string());
  }
  turned.assign(files.rbegin(), files.rend());
  const auto forward = answers("run", files, true);
  auto backward = answers("run", turned, true, {"eval.batch_seconds=0.1"});
  std::reverse(backward.begin(), backward.end());
  ASSERT_EQ(forward.size(), backward.size());
  for (size_t i = 0; i < forward.size(); ++i) {
    const auto a = nlohmann::json::parse(forward[i]), b = nlohmann::json::parse(backward[i]);
    EXPECT_EQ(a.at("text"), b.at("text"));
    EXPECT_NEAR(a.at("score").get<double>(), b.at("score").get<double>(), 1e-4);
  }
}

TEST_F(SpeechRecognitionTest, FilesAreAnsweredInTheirOrderWithWordsAndTimes) {
  EXPECT_EQ(train("run"), 0);
  const Words files{testing::put_toned_word(folder_, "new/a.wav", "ab ca", 90),
                    folder_.write("new/text", "abc"),
                    testing::put_toned_word(folder_, "new/b.wav", "bca", 91), run("new"),
                    folder_.write("new/empty", "")};
  const auto texts = answers("run", files);
  ASSERT_EQ(texts.size(), files.size());
  EXPECT_EQ(texts[0], "ab ca");
  EXPECT_EQ(texts[2], "bca");
  EXPECT_EQ(texts[1], "");
  const auto json = answers("run", files, /*json=*/true);
  const auto first = nlohmann::json::parse(json[0]);
  EXPECT_EQ(first.at("text"), "ab ca");
  const auto& words = first.at("words");
  ASSERT_EQ(words.size(), 2u);
  EXPECT_EQ(words[0].at("word"), "ab");
  // A pause and two letters of 80 ms each.
  EXPECT_NEAR(words[0].at("begin").get<double>(), 0.08, 0.08);
  EXPECT_NEAR(words[1].at("begin").get<double>(), 0.32, 0.08);
  EXPECT_LE(words[0].at("end"), words[1].at("begin"));
  EXPECT_EQ(nlohmann::json::parse(json[3]).at("problem"), "is a folder");
  EXPECT_EQ(nlohmann::json::parse(json[4]).at("problem"), "is empty");
}

TEST_F(SpeechRecognitionTest, SeveralTextsComeFromABeam) {
  EXPECT_EQ(train("run"), 0);
  const Words files{(folder_ / "valid_0.wav").string()}, beam{"decode.method=beam"};
  const auto lines = answers("run", files, false, beam, {.nbest = 3, .scores = true});
  ASSERT_EQ(lines.size(), 3u);
  double before = 1e9;
  for (const auto& line : lines) {
    const double score = std::stod(line.substr(0, line.find('\t')));
    EXPECT_LE(score, before);
    before = score;
  }
  failure(ExitCode::kUsage, [&] { answers("run", files, false, {}, {.nbest = 3}); });
}

TEST_F(SpeechRecognitionTest, LogProbabilitiesOfRowsAreThoseThatTheTextIsReadFrom) {
  EXPECT_EQ(train("run"), 0);
  Words files;
  for (int i = 0; i < 4; ++i) {
    files.push_back((folder_ / ("valid_" + std::to_string(i) + ".wav")).string());
  }
  const auto together = answers("run", files, true, {}, {.log_probs = true});
  const auto alone = answers("run", files, true, {"eval.batch_seconds=0.1"}, {.log_probs = true});
  ASSERT_EQ(together.size(), files.size());
  for (size_t i = 0; i < files.size(); ++i) {
    const auto a = nlohmann::json::parse(together[i]), b = nlohmann::json::parse(alone[i]);
    ASSERT_EQ(a.at("log_probs").size(), b.at("log_probs").size());
    EXPECT_FALSE(a.at("log_probs").empty());
    double best = 0;
    for (size_t t = 0; t < a.at("log_probs").size(); ++t) {
      const auto row = a.at("log_probs")[t].get<std::vector<double>>();
      const auto other = b.at("log_probs")[t].get<std::vector<double>>();
      ASSERT_EQ(row.size(), other.size());
      double sum = 0;
      for (size_t k = 0; k < row.size(); ++k) {
        sum += std::exp(row[k]);
        EXPECT_NEAR(row[k], other[k], 1e-5 * (1 + std::abs(row[k])));
      }
      EXPECT_NEAR(sum, 1, 1e-5);
      best += *std::ranges::max_element(row);
    }
    EXPECT_NEAR(a.at("score").get<double>(), best, 1e-3) << "greedy reading";
  }
  failure(ExitCode::kUsage, [&] { answers("run", files, false, {}, {.log_probs = true}); });
}

TEST_F(SpeechRecognitionTest, UtterancesOfAManifestAreAnsweredByTheirIds) {
  EXPECT_EQ(train("run"), 0);
  const auto lines = answers("run", {}, true, {}, {.data = {(folder_ / "valid.csv").string()}});
  ASSERT_EQ(lines.size(), valid_texts_.size());
  for (const auto& line : lines) EXPECT_TRUE(nlohmann::json::parse(line).contains("id")) << line;
}

TEST_F(SpeechRecognitionTest, TablesTellEachUtteranceAndConfusions) {
  EXPECT_EQ(train("run", {"train.max_steps=8"}), 0);
  const std::string table = (folder_ / "table.tsv").string();
  const std::string confusions = (folder_ / "confusions.tsv").string();
  scores("run", {}, {.data = {}, .predictions = table, .confusions = confusions});
  const std::string text = read_file(table);
  EXPECT_TRUE(text.starts_with("id\tseconds\twords\t")) << text;
  EXPECT_EQ(std::ranges::count(text, '\n'), 1 + std::ssize(valid_texts_));
  EXPECT_FALSE(read_file(confusions).empty()) << "a model of eight updates makes mistakes";
}

TEST_F(SpeechRecognitionTest, PhonemesAreComparedWithPhonemes) {
  const std::string lexicon =
      folder_.write("phonemes.txt", "ab A B\nca C A\nbca B C A\nacb A C B\n");
  const Words words{"tokenizer.type=phonemes", "tokenizer.lexicon=" + lexicon, "train.max_steps=8"};
  EXPECT_EQ(train("run", words), 0);
  const std::string table = (folder_ / "table.tsv").string();
  scores("run", words, {.data = {}, .predictions = table});
  ASSERT_EQ(valid_texts_.front(), "ab ca");
  EXPECT_NE(read_file(table).find("\tA B C A\t"), std::string::npos) << read_file(table);
}

TEST_F(SpeechRecognitionTest, ASoundThatVanishesIsLeftOutOfTheLossAndCounted) {
  const auto made = task();
  const data::Batch batch = made->train_batches().load_for_training(0, 0);
  ASSERT_GT(batch.num_sequences(), 1);
  const double before = made->weights(made->prepare(batch)).front();
  fs::remove(folder_ / ("train_" + std::to_string(batch.sample_ids.front()) + ".wav"));
  const auto prepared = made->prepare(batch);
  EXPECT_LT(made->weights(prepared).front(), before);
  const auto sums = made->loss(prepared, {});
  EXPECT_TRUE(std::isfinite(sums.losses.front().item<double>()));
  EXPECT_EQ(sums.counts[1], batch.num_sequences());
  EXPECT_EQ(sums.counts[3], 1);
}

TEST_F(SpeechRecognitionTest, ABatchWithoutASoundHasALossOfZeroWithAGradient) {
  const auto made = task();
  const data::Batch batch = made->train_batches().load_for_training(0, 0);
  for (int i = 0; i < 24; ++i) fs::remove(folder_ / ("train_" + std::to_string(i) + ".wav"));
  const auto prepared = made->prepare(batch);
  EXPECT_EQ(made->weights(prepared).front(), 0);
  const auto loss = made->loss(prepared, {}).losses.front();
  EXPECT_EQ(loss.item<double>(), 0);
  EXPECT_TRUE(loss.requires_grad());
  EXPECT_NO_THROW(loss.backward());
}

TEST_F(SpeechRecognitionTest, LabelsOfUtterancesAreLearnedAndNamed) {
  const Words label{"loss.name=label", "tokenizer.normalise=[\"spaces\"]",
                    "eval.best_metric=accuracy"};
  EXPECT_EQ(train("run", label), 0);
  EXPECT_GT(scores("run", label).at("accuracy"), 0.3);
  const auto line =
      answers("run", {(folder_ / "train_0.wav").string()}, /*json=*/true, label).front();
  const auto answer = nlohmann::json::parse(line);
  EXPECT_EQ(answer.at("top").front().at("label"), answer.at("label"));
  EXPECT_GT(answer.at("probability").get<double>(), 0.1);
}

TEST_F(SpeechRecognitionTest, SubWordsAreLearnedByCtc) {
  const Words pieces{"tokenizer.type=sentencepiece", "tokenizer.vocab_size=12"};
  Words short_of_them = pieces;
  short_of_them.insert(short_of_them.end(),
                       {"train.max_steps=2", "eval.every=2", "schedule.warmup_steps=1"});
  EXPECT_EQ(train("first", short_of_them), 0);
  EXPECT_EQ(train("run", pieces), 0);
  const auto before = scores("first", short_of_them), after = scores("run", pieces);
  EXPECT_LT(after.at("loss").get<double>(), 0.5 * before.at("loss").get<double>());
  EXPECT_LT(after.at("wer").get<double>(), 70.0);
  // Texts are words again, and not pieces.
  const std::string answer =
      answers("run", {(folder_ / "train_0.wav").string()}, false, pieces).at(0);
  EXPECT_EQ(answer.find("\u2581"), std::string::npos) << answer;
}

TEST_F(SpeechRecognitionTest, CommandsAreReadFromPicturesOfUtterances) {
  constexpr const char* kTen[]{"down", "go",    "left", "no", "off",
                               "on",   "right", "stop", "up", "yes"};
  uint64_t number = 0;
  const auto put = [&](const std::string& word, const std::string& text) {
    // By the hash, the first speaker is for training and the second one for validation.
    for (const char* speaker : {"91b7584a", "7311d8a3"}) {
      const std::string name = "commands/" + word + "/" + speaker + "_nohash_0.wav";
      testing::put_toned_word(folder_, name, text, ++number);
    }
  };
  for (const char* word : kTen) put(word, word == std::string("yes") ? "abc" : "a");
  put("bed", "cab");
  testing::put_toned_word(folder_, "commands/_background_noise_/rain.wav", std::string(20, ' '),
                          99);
  model_ = R"(
[model]
name = "resnet"
preset = "none"
depth = 8
base_width = 4
[loss]
name = "label"
[data.commands]
set = "12"
silence_seconds = 0.5
)";
  const std::string paths = "=[\"" + (folder_ / "commands").string() + "\"]";
  const Words commands{"data.train" + paths,
                       "data.valid" + paths,
                       "tokenizer.normalise=[\"spaces\"]",
                       "eval.best_metric=accuracy",
                       "data.format=speech_commands",
                       "train.max_steps=6",
                       "eval.every=3",
                       "train.save_every=3",
                       "augment.speeds=[0.9, 1.1]"};
  EXPECT_EQ(train("whole", commands), 0);
  for (const int64_t until : {2, 5, 0}) EXPECT_EQ(train("parts", commands, until), 0);
  EXPECT_EQ(saved("parts"), saved("whole"));
  const auto json = scores("whole", commands);
  EXPECT_EQ(json.at("utterances"), 12) << "ten words, one unknown, one of silence";
  const auto line = answers("whole", {(folder_ / "commands/yes/7311d8a3_nohash_0.wav").string()},
                            /*json=*/true, commands)
                        .front();
  EXPECT_TRUE(nlohmann::json::parse(line).contains("label"));
}

TEST_F(SpeechRecognitionTest, TheReportHasPlayers) {
  EXPECT_EQ(train("run", {"train.max_steps=8"}), 0);
  report::ReportContent content;
  report::read_report_data(fs::path(run("run")) / report::kReportDataFile, content);
  size_t players = 0;
  for (const auto& sample : content.samples) {
    const auto* media = std::get_if<report::MediaSample>(&sample);
    if (media == nullptr) continue;
    EXPECT_EQ(media->mime, "audio/wav");
    EXPECT_FALSE(media->bytes.empty()) << media->note;
    ASSERT_GE(media->rows.size(), 2u);
    EXPECT_EQ(media->rows[0].first, "Heard");
    ++players;
  }
  EXPECT_EQ(players, 2u);
}

TEST_F(SpeechRecognitionTest, AStreamIsRefusedWhereTheFutureIsSeen) {
  EXPECT_EQ(train("run", {"train.max_steps=2", "schedule.warmup_steps=0"}), 0);
  SpeechInferArguments asked;
  asked.stream = true;
  const auto error = failure(ExitCode::kUsage, [&] { answers("run", {}, false, {}, asked); });
  EXPECT_FALSE(error.message().empty());
}

/// Standard input from a file, for as long as this lives.
class InputFrom {
 public:
  explicit InputFrom(const std::string& path) : saved_(::dup(STDIN_FILENO)) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    EXPECT_GE(file, 0);
    ::dup2(file, STDIN_FILENO);
    ::close(file);
  }
  ~InputFrom() {
    ::dup2(saved_, STDIN_FILENO);
    ::close(saved_);
  }
  InputFrom(const InputFrom&) = delete;
  InputFrom& operator=(const InputFrom&) = delete;

 private:
  int saved_;
};

TEST_F(SpeechRecognitionTest, AStreamHasTheTextAndTheWordsOfTheWhole) {
  model_ = R"(
[model]
name = "deepspeech2"
preset = "none"
num_layers = 1
hidden_dim = 48
direction = "forward"
row_convolution = 3
output_dim = 64
dropout = 0.0
[[model.convolutions]]
channels = 8
time_kernel = 5
frequency_kernel = 7
time_stride = 2
frequency_stride = 2
)";
  const Words fixed{"features.normalise=fixed", "features.mean=[-8]", "features.std=[4]"};
  EXPECT_EQ(train("run", fixed), 0);
  constexpr size_t kHeader = 44;
  const std::string sound =
      audio::wave_bytes(testing::toned_word("ab ca", 90), testing::kTonedRate);
  const std::string file = folder_.write("sound.wav", sound);
  const std::string pcm = folder_.write("sound.pcm", sound.substr(kHeader));
  SpeechInferArguments asked;
  asked.stream = true;
  for (const char* method : {"decode.method=greedy", "decode.method=beam"}) {
    Words words = fixed;
    words.emplace_back(method);
    words.emplace_back("decode.stream_delay=0");
    const auto whole = answers("run", {file}, true, words).front();
    Words lines, plain;
    {
      const InputFrom input(pcm);
      lines = answers("run", {}, true, words, asked);
    }
    {
      const InputFrom input(pcm);
      plain = answers("run", {}, false, words, asked);
    }
    const auto want = nlohmann::json::parse(whole);
    const auto last = nlohmann::json::parse(lines.back());
    EXPECT_EQ(last.at("text"), want.at("text")) << method;
    EXPECT_EQ(plain, Words{want.at("text").get<std::string>()}) << method;
    ASSERT_EQ(lines.size(), want.at("words").size() + 1) << method;
    for (size_t i = 0; i + 1 < lines.size(); ++i) {
      EXPECT_EQ(nlohmann::json::parse(lines[i]).at("word"), want.at("words")[i].at("word"));
    }
  }
  folder_.write("odd.pcm", "abc");
  const InputFrom input((folder_ / "odd.pcm").string());
  failure(ExitCode::kBadData, [&] { answers("run", {}, false, fixed, asked); });
}

TEST_F(SpeechRecognitionTest, AnotherRunsWeightsAreTaken) {
  EXPECT_EQ(train("first"), 0);
  const Words from_first{"train.init_from=\"" + run("first") + "\"", "train.max_steps=1",
                         "schedule.warmup_steps=0", "optim.lr=1e-9"};
  EXPECT_EQ(train("second", from_first), 0);
  // Its batch norms have seen one more batch. Without them the loss would be that of the start.
  EXPECT_LT(scores("second").at("loss").get<double>(),
            scores("first").at("loss").get<double>() + 0.3);
}

}  // namespace
}  // namespace stretto::tasks
