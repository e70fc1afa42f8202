#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "audio/audio_file.h"
#include "audio/wave_writer.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/random.h"
#include "base/stdout.h"
#include "base/text.h"
#include "data/batch.h"
#include "data/text_input.h"
#include "families/speech_synthesis/engine/commands.h"
#include "families/speech_synthesis/engine/synthesis_run.h"
#include "families/speech_synthesis/engine/synthesis_samples.h"
#include "families/speech_synthesis/engine/voice_set.h"
#include "families/speech_synthesis/requests.h"
#include "families/speech_synthesis/speech_synthesis_options.h"
#include "families/speech_synthesis/voice_frames.h"
#include "models/packed.h"
#include "models/synthesis/synthesis_losses.h"
#include "tasks/line_work.h"

namespace stretto::tasks {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kNamedEndless = 10;  // lines that never stopped, in warnings
constexpr const char* kNoSound = "the model ended it after one frame, of which there is no sound";
constexpr int64_t kAnyCost = int64_t{1} << 60;  // sentences bound a batch

/// A line on its way to a sound.
struct VoiceLine : WorkLine {
  std::vector<int64_t> symbols = {};
  std::vector<float> sound = {};
  decoding::StopReason reason = decoding::StopReason::kLimit;
  models::AttentionShape shape = {};
  bool is_finite = true;
};

/// "00017.wav"
std::string file_name(int64_t number) {
  constexpr size_t kDigits = 5;
  std::string digits = std::to_string(number);
  if (digits.size() < kDigits) digits.insert(0, kDigits - digits.size(), '0');
  return digits + ".wav";
}

const char* end_name(decoding::StopReason reason) {
  switch (reason) {
    case decoding::StopReason::kStop:
      return "stop";
    case decoding::StopReason::kSourceEnd:
      return "text_end";
    case decoding::StopReason::kLimit:
      return "never";
  }
  return "";
}

int64_t speaker_of(const std::string& asked, const RunVoice& voice) {
  if (!voice.speakers) {
    if (asked.empty()) return 0;
    throw Error(ExitCode::kUsage, "--speaker " + printable(asked) + ": the run has one speaker",
                "leave it out");
  }
  if (!asked.empty()) return voice.speakers->number_of(asked, "--speaker");
  log::info("speaker " + printable(voice.speakers->name(0), 60) + ": --speaker names another one");
  return 0;
}

/// Speaks lines.
class Speaker final : public LineFamily<VoiceLine> {
 public:
  Speaker(const InferRequest& request, const SynthesisRun& run, at::Device device)
      : as_json_(request.json),
        folder_(request.own.as<SynthesisInferArguments>().output),
        own_(experiment::synthesis_of(request.experiment.options)),
        run_(run),
        device_(device),
        text_(own_.tokenizer, run.voice.tokenizer),
        sounds_(own_),
        limits_(frame_limits(own_)),
        speaker_(speaker_of(request.own.as<SynthesisInferArguments>().speaker, run.voice)) {
    read_style(request.own.as<SynthesisInferArguments>().style);
    make_directories(folder_);
    tell_of_earlier_sounds();
  }

  void prepare(VoiceLine& line) const override {
    line.symbols = text_.symbols(line.input.text);
    line.num_tokens = std::ssize(line.symbols);
    if (line.symbols.empty()) {
      line.input.problem = "there is nothing to say";
      return;
    }
    const int64_t unknown = text_.num_unknown(line.input.text);
    if (unknown > 0) {
      line.note = counted(unknown, "character") + " outside the alphabet " +
                  (unknown == 1 ? "is" : "are") + " left out";
    }
  }

  int64_t cost(const VoiceLine& line) const override { return line.num_tokens; }

  void run(std::span<VoiceLine* const> lines, const std::function<void()>& beat) const override {
    std::vector<models::SynthesisedFrames> spoken;
    try {
      spoken = models::synthesise(*run_.model, input_of(lines), limits_);
    } catch (const Error& error) {
      if (error.code() != ExitCode::kNumeric) throw;
      return find_overflow(lines, beat);
    }
    for (size_t i = 0; i < lines.size(); ++i) {
      VoiceLine& line = *lines[i];
      const at::Tensor weights = spoken[i].attention.to(at::kCPU, at::kFloat).contiguous();
      line.shape = models::attention_shape(
          {weights.const_data_ptr<float>(), static_cast<size_t>(weights.numel())}, line.num_tokens);
      line.reason = spoken[i].reason;
      // First phases are those of the text, whatever its line and its batch are.
      line.sound = sounds_(features_of(spoken[i].frames), phases_of(line.symbols));
      beat();
    }
  }

  bool is_finite(const VoiceLine& line) const override { return line.is_finite; }

  void write(std::span<const VoiceLine> lines) override {
    for (const VoiceLine& line : lines) {
      const bool is_spoken = line.input.problem.empty() && !line.sound.empty();
      const fs::path path = folder_ / file_name(line.number + 1);
      if (line.input.problem.empty() && line.sound.empty()) {
        log::warn(line.input.place + ": " + kNoSound + ": it gets no file");
      }
      if (is_spoken) {
        audio::write_wave(path, line.sound, sounds_.rate());
        ++num_sounds_;
        num_samples_ += std::ssize(line.sound);
        if (line.reason == decoding::StopReason::kLimit) tell_of_endless(line, path);
      }
      if (as_json_) {
        std::cout << json_of(line, path);
      } else {
        std::cout << (is_spoken ? shown_on_stdout(path.string()) : "") << "\n";
      }
    }
  }

  void finish() override {
    if (num_endless_ > kNamedEndless) {
      log::warn("sentences that never stopped: " + with_thousands(num_endless_) + " of " +
                with_thousands(num_sounds_));
    }
  }

  std::string counts() const override {
    return counted(num_sounds_, "sound") + " of " +
           human_duration(static_cast<double>(num_samples_) / static_cast<double>(sounds_.rate())) +
           ", " + with_thousands(num_endless_) + " never stopped";
  }

 private:
  void tell_of_earlier_sounds() const {
    int64_t count = 0;
    std::error_code ignored;
    for (fs::directory_iterator entry(folder_, ignored), end; entry != end;
         entry.increment(ignored)) {
      const std::string name = entry->path().filename().string();
      const std::string digits = name.substr(0, name.find('.'));
      if (name.ends_with(".wav") && digits.find_first_not_of("0123456789") == std::string::npos) {
        ++count;
      }
    }
    if (count == 0) return;
    log::warn(folder_.string() + " has " + counted(count, "sound") +
              " of an earlier call: those of the same lines are replaced, and others stay");
  }

  // A batch that is refused for one of its lines is spoken line by line, so that this one is named.
  void find_overflow(std::span<VoiceLine* const> lines, const std::function<void()>& beat) const {
    if (lines.size() == 1) {
      lines.front()->is_finite = false;
      return;
    }
    for (size_t i = 0; i < lines.size(); ++i) run(lines.subspan(i, 1), beat);
  }

  // [frames, W] of a sound in the wanted style.
  void read_style(const std::string& path) {
    if (path.empty()) return;
    if (!run_.model->has_style()) {
      throw Error(ExitCode::kUsage, "--style: the model has no style tokens",
                  "leave it out, or train with model.style.num_tokens");
    }
    const experiment::VoiceFrames frames(own_, /*seed=*/0);
    style_ = frames.style(audio::read_audio(path, {.rate = frames.rate()}));
    if (style_->num_frames() == 0) {
      throw Error(ExitCode::kBadData, path + ": there is no sound in it", "name another file");
    }
  }

  uint64_t phases_of(const std::vector<int64_t>& symbols) const {
    auto key = static_cast<uint64_t>(own_.decode.seed);
    for (const int64_t symbol : symbols) key = mix64(key, static_cast<uint64_t>(symbol));
    return key;
  }

  models::SynthesisInput input_of(std::span<VoiceLine* const> lines) const {
    data::PackedTokens symbols;
    for (const VoiceLine* line : lines) symbols.append(line->symbols);
    models::SynthesisInput input;
    input.text = models::pack(symbols, nullptr, device_);
    if (run_.model->num_speakers() > 1) {
      input.speakers =
          at::full({std::ssize(lines)}, speaker_, at::TensorOptions(at::kLong).device(device_));
    }
    if (style_) {
      data::Ragged<float> style;
      style.width = style_->width;
      for (size_t i = 0; i < lines.size(); ++i) style.append(style_->values);
      input.style = models::pack(style, nullptr, device_);
    }
    input.sentence_keys = models::sentence_keys(symbols, device_);
    input.prenet_seed = static_cast<uint64_t>(own_.decode.seed);
    return input;
  }

  void tell_of_endless(const VoiceLine& line, const fs::path& path) {
    if (++num_endless_ > kNamedEndless) return;
    log::warn(line.input.place + ": never stopped: " + path.string() + " is cut at " +
              fixed(seconds_of(line), 1) + " s (" + bound_of(line) + ")");
  }

  // The key that bounds a sentence of so many symbols.
  const char* bound_of(const VoiceLine& line) const {
    const double by_symbols =
        own_.decode.max_seconds_per_symbol * static_cast<double>(line.num_tokens);
    return by_symbols > 0 && by_symbols < own_.decode.max_seconds ? "decode.max_seconds_per_symbol"
                                                                  : "decode.max_seconds";
  }

  double seconds_of(const VoiceLine& line) const {
    return static_cast<double>(line.sound.size()) / static_cast<double>(sounds_.rate());
  }

  std::string json_of(const VoiceLine& line, const fs::path& path) const {
    nlohmann::ordered_json json{{"text", line.input.text}};
    if (!line.input.problem.empty()) {
      json["problem"] = line.input.problem;
      return json_line(json);
    }
    if (line.sound.empty()) {
      json["problem"] = kNoSound;
      return json_line(json);
    }
    json["file"] = path.string();
    json["seconds"] = seconds_of(line);
    json["end"] = end_name(line.reason);
    json["attention_diagonality"] = line.shape.diagonality;
    json["monotonic_steps"] = line.shape.monotonic;
    return json_line(json);
  }

  const bool as_json_;
  const fs::path folder_;
  const experiment::SpeechSynthesisOptions& own_;
  const SynthesisRun& run_;
  const at::Device device_;
  const VoiceText text_;
  const experiment::FrameSounds sounds_;
  const decoding::FrameLimits limits_;
  const int64_t speaker_;
  std::optional<audio::Features> style_;
  int64_t num_sounds_ = 0, num_samples_ = 0, num_endless_ = 0;
};

}  // namespace

int speak_lines(const InferRequest& request, const CommandContext& context) {
  const auto folder = runs::RunFolder::open(request.run_directory);
  data::TextInput input(request.files);  // missing files before models load
  const auto run =
      load_synthesis_run(request.experiment.options, folder, request.checkpoints, context.device);
  Speaker speaker(request, run, context.device);
  const auto& decode = experiment::synthesis_of(request.experiment.options).decode;
  answer_lines(
      speaker, input,
      {.files = request.files,
       .run = request.run_directory,
       .device = context.device,
       .max_lines = static_cast<size_t>(std::clamp<int64_t>(4 * decode.max_samples, 16, 256)),
       .batches = {.order = CostOrder::kLongestFirst,
                   .max_cost = kAnyCost,
                   .max_samples = decode.max_samples,
                   .for_all_threads = true},
       .words = {.answer = "the sound of this line", .problem = "it gets no sound"},
       .stats = request.stats});
  return 0;
}

}  // namespace stretto::tasks
