#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "audio/audio_file.h"
#include "audio/resample.h"
#include "audio/sound_features.h"
#include "base/error.h"
#include "base/stdout.h"
#include "base/text.h"
#include "data/speech/clipped_sounds.h"
#include "data/speech/speech_set.h"
#include "data/text_input.h"
#include "families/speech_recognition/engine/commands.h"
#include "families/speech_recognition/engine/speech_run.h"
#include "families/speech_recognition/engine/spoken_words.h"
#include "families/speech_recognition/engine/transcriber.h"
#include "families/speech_recognition/requests.h"
#include "families/speech_recognition/speech_facts.h"
#include "models/packed.h"
#include "tasks/left_out.h"
#include "tasks/line_work.h"

namespace stretto::tasks {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kUsualLabels = 5;  // of labels in JSON

/// A sound on its way through the models.
struct SoundLine : WorkLine {
  int64_t sample = -1;  ///< in the set of `--data`; -1 = the line is a path
  double seconds = 0;
  audio::Features features = {};
  std::vector<Transcript> heard = {};  ///< best first
  struct Guess {
    int64_t label = 0;
    double probability = 0;
  };
  std::vector<Guess> guesses = {};  ///< most probable ones first
  at::Tensor log_probs = {};        ///< [T, L + 1], of `--log-probs`
  bool is_finite = true;
};

/// The files of the command line, a sound each.
class SoundFiles final : public LineSource<SoundLine> {
 public:
  explicit SoundFiles(const std::vector<std::string>& files) : files_(files) {}
  bool next(SoundLine& line) override {
    if (next_ == files_.size()) return false;
    line.input.text = line.input.place = files_[next_++];
    return true;
  }
  bool ready() override { return true; }

 private:
  const std::vector<std::string>& files_;
  size_t next_ = 0;
};

/// The utterances of `--data`.
class SoundSet final : public LineSource<SoundLine> {
 public:
  explicit SoundSet(const data::SpeechSet& set) : set_(set) {}
  bool next(SoundLine& line) override {
    if (next_ == set_.size()) return false;
    line.sample = next_++;
    line.input.text = set_.id(line.sample);
    line.input.place = set_.place(line.sample);
    return true;
  }
  bool ready() override { return true; }

 private:
  const data::SpeechSet& set_;
  int64_t next_ = 0;
};

// Throws Error(kBadData) for what is no file that can be read.
void require_file(const std::string& path) {
  std::error_code failed;
  if (path.empty()) throw Error(ExitCode::kBadData, "an empty path", "name a sound");
  if (fs::is_directory(path, failed)) {
    throw Error(ExitCode::kBadData, path + ": is a folder",
                "name the sounds in it, or give it with --data");
  }
  if (!fs::is_regular_file(path, failed)) {
    throw Error(ExitCode::kBadData, path + ": is no file", "name a sound");
  }
}

// [T, L + 1] fp32 as an array of T arrays.
nlohmann::ordered_json json_of_rows(const at::Tensor& rows) {
  auto json = nlohmann::ordered_json::array();
  const auto numbers = rows.accessor<float, 2>();
  for (int64_t t = 0; t < rows.size(0); ++t) {
    auto& row = json.emplace_back(nlohmann::ordered_json::array());
    for (int64_t k = 0; k < rows.size(1); ++k) row.push_back(numbers[t][k]);
  }
  return json;
}

// What is wrong with a sound; a file is its own place, which answers and warnings name.
std::string behind_place(std::string what, const std::string& place) {
  const std::string prefix = place + ": ";
  return what.starts_with(prefix) ? what.substr(prefix.size()) : what;
}

/// Writes down what is said in sounds.
class SoundReader final : public LineFamily<SoundLine> {
 public:
  SoundReader(const InferRequest& request, const experiment::SpeechRecognitionOptions& own,
              const SpeechRun& run, const data::SpeechSet* set, at::Device device)
      : as_json_(request.json),
        asked_(request.own.as<SpeechInferArguments>()),
        own_(own),
        run_(run),
        set_(set),
        device_(device),
        sounds_(own.features),
        clock_(own.features, own.model),
        reader_(run.models, run.units, own) {}

  /// Samples and frames of the sound, by its header.
  size_t bytes(const SoundLine& line) const override {
    double seconds = 0;
    try {
      seconds = set_ != nullptr ? set_->seconds(line.sample)
                                : audio::audio_info(line.input.text).seconds();
    } catch (const Error&) {  // told by prepare()
      return line.input.text.size();
    }
    double numbers =
        seconds * static_cast<double>(sounds_.rate()) +
        seconds * experiment::frames_per_second(own_) * static_cast<double>(sounds_.width());
    if (asked_.log_probs) {
      numbers += static_cast<double>(clock_.rows_in(seconds) * (run_.units.size() + 1));
    }
    return line.input.text.size() + static_cast<size_t>(numbers) * sizeof(float);
  }

  void prepare(SoundLine& line) const override {
    try {
      if (set_ == nullptr) require_file(line.input.text);
      const auto samples =
          set_ != nullptr ? set_->read(line.sample, sounds_.rate()) : of_file(line);
      line.seconds = static_cast<double>(samples.size()) / static_cast<double>(sounds_.rate());
      line.features = sounds_(samples);
    } catch (const Error& error) {
      if (error.code() == ExitCode::kInternal) throw;
      line.input.problem = behind_place(error.what(), line.input.place);
    }
  }

  int64_t cost(const SoundLine& line) const override {
    return std::max<int64_t>(1, line.features.num_frames());
  }

  void run(std::span<SoundLine* const> lines, const std::function<void()>& beat) const override {
    data::Ragged<float> frames;
    frames.width = sounds_.width();
    for (SoundLine* line : lines) {
      frames.append(line->features.values);
      line->features = {};
    }
    const auto heard = reader_.hear(models::pack(frames, nullptr, device_), nullptr, beat);
    for (size_t i = 0; i < lines.size(); ++i) {
      SoundLine& line = *lines[i];
      line.is_finite = heard.is_finite[i] != 0;
      if (run_.units.tokenizer) {
        line.heard = heard.transcripts[i];
        if (asked_.log_probs) line.log_probs = heard.log_probs[i];
      } else {
        take_guesses(heard.label_logits[static_cast<int64_t>(i)], line);
      }
    }
  }

  bool is_finite(const SoundLine& line) const override { return line.is_finite; }

  void write(std::span<const SoundLine> lines) override {
    for (const SoundLine& line : lines) {
      std::cout << (as_json_ ? json_of(line) : text_of(line));
    }
  }

 private:
  // The samples of a file at the rate of the features; a clipped one gets a note.
  std::vector<float> of_file(SoundLine& line) const {
    audio::AudioReader reader{fs::path(line.input.text)};
    auto samples = reader.read(audio::range_within(reader.info(), 0, 0, reader.name()));
    if (data::is_clipped(samples)) line.note = "is clipped: peaks are cut off at full scale";
    if (reader.info().rate == sounds_.rate()) return samples;
    return audio::resampled(samples, reader.info().rate, sounds_.rate());
  }

  int64_t num_labels_told() const {
    const int64_t asked = asked_.nbest > 0 ? asked_.nbest : as_json_ ? kUsualLabels : 1;
    return std::min(asked, run_.units.size());
  }

  void take_guesses(const at::Tensor& logits, SoundLine& line) const {
    const auto [highest, labels] = logits.to(at::kDouble).softmax(0).topk(num_labels_told());
    for (int64_t k = 0; k < highest.size(0); ++k) {
      line.guesses.push_back(
          {.label = labels[k].item<int64_t>(), .probability = highest[k].item<double>()});
    }
  }

  const std::string& name_of(const SoundLine::Guess& guess) const {
    return run_.units.labels->name(guess.label);
  }

  // A line for each text; labels stand beside each other. A sound that cannot be read has one empty
  // line.
  std::string text_of(const SoundLine& line) const {
    if (!line.input.problem.empty()) return "\n";
    if (run_.units.labels) {
      std::vector<std::string> parts;
      for (const auto& guess : line.guesses) {
        parts.push_back(shown_on_stdout(name_of(guess)) +
                        (asked_.scores ? "=" + fixed(guess.probability, 6) : ""));
      }
      return join(parts, "\t") + "\n";
    }
    std::string text;
    for (const auto& transcript : line.heard) {
      if (asked_.scores) text += fixed(transcript.score, 4) + "\t";
      text += shown_on_stdout(transcript.text) + "\n";
    }
    return text;
  }

  std::string json_of(const SoundLine& line) const {
    nlohmann::ordered_json json{{set_ != nullptr ? "id" : "file", line.input.text}};
    if (!line.input.problem.empty()) {
      json["problem"] = line.input.problem;
      return json_line(json);
    }
    json["seconds"] = line.seconds;
    if (run_.units.labels) {
      add_labels(line, json);
    } else {
      add_texts(line, json);
    }
    return json_line(json);
  }

  void add_labels(const SoundLine& line, nlohmann::ordered_json& json) const {
    json["label"] = name_of(line.guesses.front());
    json["probability"] = line.guesses.front().probability;
    auto top = nlohmann::ordered_json::array();
    for (const auto& guess : line.guesses) {
      top.push_back({{"label", name_of(guess)}, {"probability", guess.probability}});
    }
    json["top"] = std::move(top);
  }

  void add_texts(const SoundLine& line, nlohmann::ordered_json& json) const {
    const auto& best = line.heard.front();
    json["text"] = best.text;
    json["score"] = best.score;
    auto words = nlohmann::ordered_json::array();
    for (const auto& word : spoken_words(best, clock_, line.seconds)) {
      words.push_back(json_of_word(word));
    }
    json["words"] = std::move(words);
    if (line.heard.size() > 1) {
      auto nbest = nlohmann::ordered_json::array();
      for (const auto& transcript : line.heard) {
        nbest.push_back({{"text", transcript.text}, {"score", transcript.score}});
      }
      json["nbest"] = std::move(nbest);
    }
    if (asked_.log_probs) json["log_probs"] = json_of_rows(line.log_probs);
  }

  const bool as_json_;
  const SpeechInferArguments asked_;
  const experiment::SpeechRecognitionOptions& own_;
  const SpeechRun& run_;
  const data::SpeechSet* set_;  ///< of `--data`; null: lines are paths
  const at::Device device_;
  const audio::SoundFeatures sounds_;
  const RowClock clock_;
  const SpeechReader reader_;
};

bool reads_sound_paths(const std::vector<std::string>& files) {
  return files.empty() || std::ranges::find(files, "-") != files.end();
}

void require_possible(const InferRequest& request, const SpeechInferArguments& asked) {
  if (!asked.data.empty() && !request.files.empty()) {
    throw Error(ExitCode::kUsage,
                "--data beside " + request.files.front() + ": sounds come from one of them",
                "leave one of them out");
  }
  if (request.files.size() > 1 && reads_sound_paths(request.files)) {
    throw Error(ExitCode::kUsage, "-: stdin has the paths of sounds, one a line",
                "name sounds, or give - alone");
  }
  if (asked.log_probs && !request.json) {
    throw Error(ExitCode::kUsage, "--log-probs: plain texts have no place for them", "add --json");
  }
}

// What was asked, as the configuration has it.
experiment::SpeechRecognitionOptions asked_options(const InferRequest& request,
                                                   const SpeechInferArguments& asked) {
  auto own = experiment::speech_of(request.experiment.options);
  if (own.has_label() || asked.nbest == 0) return own;
  const bool is_attention = own.decode.reader == "attention";
  if (asked.nbest > 1 && own.decode.method != "beam") {
    throw Error(ExitCode::kUsage, "--nbest: greedy reading has one text", "set decode.method=beam");
  }
  if (asked.nbest > own.decode.beam_size && (is_attention || own.decode.method == "beam")) {
    throw Error(ExitCode::kUsage,
                "--nbest " + std::to_string(asked.nbest) + ": the beam has " +
                    std::to_string(own.decode.beam_size) + " texts",
                "raise decode.beam_size");
  }
  own.decode.nbest = asked.nbest;
  return own;
}

}  // namespace

int infer_speech(const InferRequest& request, const CommandContext& context) {
  const auto& asked = request.own.as<SpeechInferArguments>();
  if (asked.stream) return infer_speech_stream(request, context);
  require_possible(request, asked);
  const auto own = asked_options(request, asked);
  const auto folder = runs::RunFolder::open(request.run_directory);
  const auto run =
      load_speech_run(request.experiment.options, folder, request.checkpoints, context.device);
  std::shared_ptr<const data::SpeechSet> set;
  if (!asked.data.empty()) {
    set = data::open_speech(own.data, "--data", asked.data);
    warn_of_left_out(set->left_out());
  }
  SoundReader reader(request, own, run, set.get(), context.device);
  const bool lines = set == nullptr && reads_sound_paths(request.files);
  const double seconds =
      own.eval.batch_seconds > 0 ? own.eval.batch_seconds : own.data.batch_seconds;
  const double frames = std::max(1.0, seconds * experiment::frames_per_second(own));
  LineWork<SoundLine> work(
      reader, {.files = request.files,
               .files_are_lines = !lines,
               .run = request.run_directory,
               .device = context.device,
               .max_lines = 1024,
               .max_bytes = size_t{512} << 20,
               .batches = {.order = CostOrder::kLongestFirst,
                           .max_cost = static_cast<int64_t>(frames),
                           .for_all_threads = true},
               .words = {.answer = "what was heard in this sound", .problem = "it has no text"},
               .stats = request.stats});
  if (set != nullptr) {
    SoundSet source(*set);
    work.run(source);
  } else if (lines) {
    data::TextInput input(request.files);
    TextSource<SoundLine> source(input);
    work.run(source);
  } else {
    SoundFiles source(request.files);
    work.run(source);
  }
  work.finish();
  return 0;
}

}  // namespace stretto::tasks
