#include "families/speech_synthesis/engine/voice_set.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/log_silence.h"
#include "base/text.h"
#include "data/speech/transcripts.h"
#include "families/speech_synthesis/speakers.h"

namespace stretto::tasks {
namespace {

int64_t num_code_points(std::string_view text) {
  return std::ranges::count_if(text, [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;  // no byte within a character
  });
}

// The same sequences with the end of a text behind each.
data::PackedTokens with_ends(const data::PackedTokens& targets, const VoiceText& text) {
  data::PackedTokens ended;
  for (int64_t i = 0; i < targets.num_sequences(); ++i) {
    const auto symbols = targets.sequence(i);
    std::vector<int64_t> all(symbols.begin(), symbols.end());
    text.end(all);
    ended.append(all);
  }
  return ended;
}

void tell_of(const VoiceSet& set, const experiment::SpeechSynthesisOptions& own,
             const std::string& key) {
  for (const auto& remark : set.remarks) log::warn(key + ": " + remark);
  const auto& outside = set.clips->outside_limits();
  if (outside.count() > 0) log::info(key + ": left out: " + outside.text(own.data));
}

}  // namespace

VoiceText::VoiceText(const text::TargetOptions& options,
                     std::shared_ptr<const text::Tokenizer> tokenizer)
    : options_(options), rules_(options), tokenizer_(std::move(tokenizer)) {}

void VoiceText::end(std::vector<int64_t>& symbols) const {
  const int64_t eos = tokenizer_->specials().eos;
  if (eos >= 0) symbols.push_back(eos);
}

std::vector<int64_t> VoiceText::symbols(std::string_view text) const {
  auto symbols = data::encode_transcript(text, rules_, *tokenizer_);
  if (!symbols.empty()) end(symbols);
  return symbols;
}

int64_t VoiceText::num_unknown(std::string_view text) const {
  if (options_.type != "char" || rules_.keeps_unknown()) return 0;
  const auto known = std::ssize(data::encode_transcript(text, rules_, *tokenizer_));
  return std::max<int64_t>(0, num_code_points(rules_.target(text)) - known);
}

const std::string& VoiceSet::text_of(int64_t clip) const {
  const auto found = std::ranges::lower_bound(samples.ids, clip);
  if (found == samples.ids.end() || *found != clip) {
    throw std::out_of_range("no sample is clip " + std::to_string(clip));
  }
  return texts[static_cast<size_t>(found - samples.ids.begin())];
}

uint64_t VoiceSet::hash() const {
  Xxh3Stream all;
  const uint64_t sounds = clips->hash();
  all.update(&sounds, sizeof sounds);
  const auto add = [&all](const std::vector<int64_t>& numbers) {
    all.update(numbers.data(), numbers.size() * sizeof(int64_t));
  };
  add(samples.ids);
  add(samples.targets.values);
  add(speakers);
  return all.digest();
}

VoiceSet open_voice_set(const experiment::SpeechSynthesisOptions& own, const std::string& key,
                        const std::vector<std::string>& paths, const VoiceText& text,
                        const std::optional<data::Labels>& speakers, int64_t threads, bool tells) {
  std::optional<log::Silence> silence;
  if (!tells) silence.emplace();
  VoiceSet set;
  set.clips = data::open_speech(own.data, key, paths);
  set.speakers = experiment::speaker_numbers(*set.clips, speakers);
  auto transcripts =
      data::encode_transcripts(*set.clips, text.options(), text.tokenizer(), threads);
  set.remarks = transcripts.remarks(*set.clips);
  set.samples = std::move(transcripts.samples);
  set.texts = std::move(transcripts.texts);
  if (set.samples.ids.empty()) {
    throw Error(ExitCode::kBadData, key + ": no clip has a text that can be used",
                "check tokenizer.alphabet, tokenizer.normalise and tokenizer.unknown", set.remarks);
  }
  set.samples.targets = with_ends(set.samples.targets, text);
  tell_of(set, own, key);
  return set;
}

std::unique_ptr<data::BatchSource> voice_batches(const VoiceSet& set,
                                                 const data::SpeechDataOptions& options,
                                                 double batch_seconds, data::Shuffle shuffle,
                                                 uint64_t seed) {
  return data::make_utterance_batches(set.samples, {.batch_seconds = batch_seconds,
                                                    .max_samples = options.max_samples,
                                                    .bucket_seconds = options.bucket_seconds,
                                                    .shuffle = shuffle,
                                                    .seed = seed});
}

}  // namespace stretto::tasks
