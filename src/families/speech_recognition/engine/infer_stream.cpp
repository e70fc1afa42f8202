#include <torch/torch.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "audio/feature_stream.h"
#include "base/error.h"
#include "base/stdout.h"
#include "ctc/ctc_search.h"
#include "families/speech_recognition/engine/commands.h"
#include "families/speech_recognition/engine/speech_run.h"
#include "families/speech_recognition/engine/spoken_words.h"
#include "families/speech_recognition/engine/transcriber.h"
#include "families/speech_recognition/requests.h"
#include "tasks/finite_answers.h"
#include "tasks/line_work.h"

namespace stretto::tasks {
namespace {

constexpr const char* kPlace = "stdin";

/// Samples of 16 bits, little-endian, as they arrive.
class PcmInput {
 public:
  /// Waits for the next samples. @return none at the end. Throws Error(kIo), and Error(kBadData)
  /// where the last sample is half there.
  std::vector<float> next() {
    for (;;) {
      const ssize_t size = ::read(STDIN_FILENO, bytes_.data() + held_, bytes_.size() - held_);
      if (size < 0 && errno == EINTR) continue;
      if (size < 0) {
        throw Error(ExitCode::kIo, std::string(kPlace) + ": " + std::strerror(errno), "");
      }
      if (size == 0) break;
      held_ += static_cast<size_t>(size);
      if (held_ > 1) return take();
    }
    if (held_ == 0) return {};
    throw Error(ExitCode::kBadData, std::string(kPlace) + ": an odd number of bytes",
                "send samples of 16 bits (s16le), without a header");
  }

 private:
  std::vector<float> take() {
    std::vector<float> samples;
    for (size_t at = 0; at + 1 < held_; at += 2) {
      const auto low = static_cast<uint8_t>(bytes_[at]);
      const auto high = static_cast<uint8_t>(bytes_[at + 1]);
      const auto sample = static_cast<int16_t>(static_cast<uint16_t>(low | (high << 8)));
      samples.push_back(static_cast<float>(sample) / 32768);
    }
    if (held_ % 2 != 0) bytes_[0] = bytes_[held_ - 1];
    held_ %= 2;
    return samples;
  }

  std::array<char, 8192> bytes_{};
  size_t held_ = 0;
};

/// Prints words once, as they become certain.
class WordOutput {
 public:
  WordOutput(const RowClock& clock, bool as_json) : clock_(clock), as_json_(as_json) {}

  /// @param words  all that are certain so far
  void tell(const std::vector<ctc::CtcWord>& words) {
    if (words.size() <= told_) return;
    for (; told_ < words.size(); ++told_) tell_word(words[told_]);
    flush_stdout();
  }

  /// The end of the sound, where all words are certain.
  void finish(const Transcript& best) {
    tell(best.words);
    if (as_json_) {
      std::cout << json_line({{"text", best.text}, {"score", best.score}});
    } else {
      std::cout << "\n";
    }
    flush_stdout();
  }

 private:
  void tell_word(const ctc::CtcWord& word) {
    if (as_json_) {
      std::cout << json_line(json_of_word(clock_.word_of(word)));
      return;
    }
    std::cout << (told_ == 0 ? "" : " ") << shown_on_stdout(word.text);
  }

  const RowClock& clock_;
  const bool as_json_;
  size_t told_ = 0;
};

/// A sound on its way from samples to words.
class SpeechStream {
 public:
  SpeechStream(const experiment::SpeechRecognitionOptions& own, models::SpeechModel& model,
               const Transcriber& transcriber, const RowClock& clock, at::Device device)
      : features_(own.features),
        rows_(model.stream()),
        scorer_(transcriber.scorer()),
        search_(transcriber.decoder(), scorer_.get()),
        transcriber_(transcriber),
        device_(device),
        delay_(own.decode.method == "beam" && own.decode.stream_delay > 0
                   ? std::optional(clock.rows_in(own.decode.stream_delay))
                   : std::nullopt) {}

  /// @return what is certain now
  std::vector<ctc::CtcWord> push(std::span<const float> samples) {
    const auto frames = features_.push(samples);
    if (frames.num_frames() == 0) return {};
    search(rows_->push(tensor_of(frames)));
    if (delay_ && search_.num_frames() > *delay_) search_.settle(search_.num_frames() - *delay_);
    return search_.certain().words;
  }

  /// The whole text.
  Transcript finish() {
    const auto frames = features_.finish();
    if (frames.num_frames() > 0) search(rows_->push(tensor_of(frames)));
    search(rows_->finish());
    if (search_.num_frames() == 0) return {};
    return transcriber_.transcript_of(search_.finish().front());
  }

 private:
  at::Tensor tensor_of(const audio::Features& frames) const {
    const at::Tensor values = at::empty({frames.num_frames(), frames.width}, at::kFloat);
    std::ranges::copy(frames.values, values.mutable_data_ptr<float>());
    return values.to(device_);
  }

  // scores [m, L + 1]
  void search(const at::Tensor& scores) {
    if (scores.size(0) == 0) return;
    const at::Tensor log_probs = scores.to(at::kFloat).log_softmax(1).to(at::kCPU).contiguous();
    search_.push({log_probs.const_data_ptr<float>(), static_cast<size_t>(log_probs.numel())});
  }

  audio::FeatureStream features_;
  std::unique_ptr<models::RowStream> rows_;
  std::unique_ptr<decoding::TokenScorer> scorer_;  ///< null: none beside the decoder
  ctc::CtcSearch search_;
  const Transcriber& transcriber_;
  const at::Device device_;
  const std::optional<int64_t> delay_;  ///< rows
};

}  // namespace

int infer_speech_stream(const InferRequest& request, const CommandContext& context) {
  if (!request.files.empty() && request.files != std::vector<std::string>{"-"}) {
    throw Error(ExitCode::kUsage,
                "--stream: the sound comes from stdin, and not from " + request.files.front(),
                "leave --stream out to read files");
  }
  const auto& own = experiment::speech_of(request.experiment.options);
  const auto folder = runs::RunFolder::open(request.run_directory);
  const auto run =
      load_speech_run(request.experiment.options, folder, request.checkpoints, context.device);
  if (run.models.size() > 1) {
    throw Error(ExitCode::kUsage, "--stream: one model reads a stream, and no ensemble",
                "name one checkpoint");
  }
  const torch::NoGradGuard no_grad;
  const Transcriber transcriber(own, run.units, context.device);
  const RowClock clock(own.features, own.model);
  WordOutput output(clock, request.json);
  SpeechStream stream(own, *run.models.front(), transcriber, clock, context.device);
  PcmInput input;
  try {
    for (auto samples = input.next(); !samples.empty(); samples = input.next()) {
      output.tell(stream.push(samples));
    }
    output.finish(stream.finish());
  } catch (const Error& error) {
    if (error.code() != ExitCode::kNumeric) throw;
    refuse_not_finite(kPlace, "what was heard of it", request.run_directory);
  }
  return 0;
}

}  // namespace stretto::tasks
