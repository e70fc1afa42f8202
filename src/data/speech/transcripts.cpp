#include "data/speech/transcripts.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "data/cached_inputs.h"
#include "data/content_hash.h"
#include "data/on_threads.h"
#include "text/code_points.h"

namespace stretto::data {
namespace {

constexpr size_t kTextsAtOnce = 512, kMostUnknownShown = 10, kMostImpossibleShown = 10;

/// One line that has all characters.
class AlphabetLine final : public text::LineSource {
 public:
  explicit AlphabetLine(std::string alphabet) : alphabet_(std::move(alphabet)) {}
  bool next(std::string& line) override {
    if (std::exchange(is_read_, true)) return false;
    line = alphabet_;
    return true;
  }
  uint64_t key() override { return xxh3_64("alphabet\n" + alphabet_); }

 private:
  std::string alphabet_;
  bool is_read_ = false;
};

class TranscriptLines final : public text::LineSource {
 public:
  TranscriptLines(std::shared_ptr<const SpeechSet> set, const text::TargetOptions& options)
      : set_(std::move(set)), rules_(options), key_(key_of(*set_, options)) {}

  bool next(std::string& line) override {
    if (at_ == set_->size()) return false;
    line = rules_.target(set_->text(at_++));
    return true;
  }
  uint64_t key() override { return key_; }

 private:
  static uint64_t key_of(const SpeechSet& set, const text::TargetOptions& options) {
    std::string text = "transcripts " + hex64(set.hash()) + options.type + options.unknown;
    for (const auto& rule : options.normalise) text += sized(rule);
    text += sized(options.word_boundary);
    if (options.type == "phonemes" && !options.lexicon.empty()) {
      text += hex64(content_hashes({options.lexicon}, {}, 1).front());
    }
    return xxh3_64(text);
  }

  std::shared_ptr<const SpeechSet> set_;
  text::TargetText rules_;
  uint64_t key_;
  int64_t at_ = 0;
};

/// One text as ids.
struct EncodedTranscript {
  std::vector<int64_t> ids;
  std::string text;                  ///< normalised
  std::vector<std::string> unknown;  ///< one entry for each occurrence
};

std::vector<size_t> begins_of_code_points(std::string_view text) {
  std::vector<size_t> begins;
  for (size_t at = 0; at <= text.size(); ++at) {
    if (at == text.size() || !text::continues_code_point(text[at])) begins.push_back(at);
  }
  return begins;
}

/// What the unknown ids of a text stand for.
std::vector<std::string> unknown_parts(const std::string& target, int64_t unk,
                                       const text::Tokenizer& tokenizer) {
  std::vector<int64_t> ids;
  std::vector<text::CodePointSpan> spans;
  tokenizer.encode_with_spans(target, ids, spans);
  const auto begins = begins_of_code_points(target);
  std::vector<std::string> parts;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] != unk) continue;
    const auto last = std::ssize(begins) - 1;
    const auto begin = begins[static_cast<size_t>(std::min(spans[i].begin, last))];
    const auto end = begins[static_cast<size_t>(std::min(spans[i].end, last))];
    parts.push_back(target.substr(begin, std::max(begin, end) - begin));
  }
  return parts;
}

class TranscriptEncoding {
 public:
  TranscriptEncoding(const text::TargetText& rules, const text::Tokenizer& tokenizer)
      : rules_(rules), tokenizer_(tokenizer), unk_(tokenizer.specials().unk) {}

  EncodedTranscript encode(std::string_view text) const {
    EncodedTranscript made;
    made.text = rules_.normalised(text);
    const std::string target =
        rules_.target(text, [&](std::string_view word) { made.unknown.emplace_back(word); });
    tokenizer_.encode(target, made.ids);
    if (!has_unknown(made.ids)) return made;
    const bool is_told = !made.unknown.empty();  // of a lexicon, the words are
    if (!is_told) made.unknown = unknown_parts(target, unk_, tokenizer_);
    if (rules_.keeps_unknown()) return made;
    if (!is_told) {
      made.ids.clear();
      tokenizer_.encode(without(target, made.unknown), made.ids);
    }
    std::erase(made.ids, unk_);
    return made;
  }

 private:
  /// A dash between spaces leaves one of them, and a mark at an end none.
  static std::string without(std::string text, const std::vector<std::string>& parts) {
    for (const std::string& part : parts) {
      for (size_t at = 0; !part.empty() && (at = text.find(part, at)) != std::string::npos;)
        text.erase(at, part.size());
    }
    return join(split_words(text), " ");
  }

  bool has_unknown(const std::vector<int64_t>& ids) const {
    return unk_ >= 0 && std::find(ids.begin(), ids.end(), unk_) != ids.end();
  }

  const text::TargetText& rules_;
  const text::Tokenizer& tokenizer_;
  int64_t unk_;
};

/// Takes over one sample after the other.
class TranscriptGathering {
 public:
  TranscriptGathering(const SpeechSet& set, const text::TargetOptions& options)
      : set_(set), skips_(options.unknown == "skip") {
    made_.unknown.are_words = options.type == "word" || options.type == "phonemes";
    made_.unknown.fate = skips_                      ? "such utterances are left out"
                         : options.unknown == "keep" ? "<unk> stands in their place"
                                                     : "they are left out of the texts";
  }

  void add(int64_t sample, EncodedTranscript encoded) {
    if (!encoded.unknown.empty()) {
      count(sample, encoded.unknown);
      if (skips_) {
        ++made_.unusable;
        return;
      }
    }
    if (encoded.ids.empty()) {
      ++made_.empty;
      return;
    }
    made_.samples.ids.push_back(sample);
    made_.samples.seconds.push_back(set_.seconds(sample));
    made_.samples.targets.append(encoded.ids);
    made_.texts.push_back(std::move(encoded.text));
  }

  Transcripts take() { return std::move(made_); }

 private:
  void count(int64_t sample, const std::vector<std::string>& unknown) {
    auto& all = made_.unknown;
    if (all.first < 0) all.first = sample;
    ++all.utterances;
    all.count += std::ssize(unknown);
    for (const auto& part : unknown) ++all.parts[part];
  }

  const SpeechSet& set_;
  bool skips_;
  Transcripts made_;
};

}  // namespace

std::unique_ptr<text::LineSource> transcript_lines(std::shared_ptr<const SpeechSet> set,
                                                   const text::TargetOptions& options) {
  if (options.type == "char" && !options.alphabet.empty()) {
    return std::make_unique<AlphabetLine>(options.alphabet);
  }
  return std::make_unique<TranscriptLines>(std::move(set), options);
}

std::string UnknownText::text() const {
  if (count == 0) return "";
  std::vector<std::pair<std::string, int64_t>> sorted(parts.begin(), parts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> shown;
  for (const auto& [part, times] : sorted) {
    if (shown.size() == kMostUnknownShown) break;
    shown.push_back("`" + printable(part, 60) + "` " + with_thousands(times));
  }
  if (shown.size() < sorted.size()) shown.emplace_back("…");
  return "the tokenizer lacks " + counted(count, are_words ? "word" : "character") + " in " +
         counted(utterances, "utterance") + ": " + join(shown, ", ") + "; " + fate;
}

std::vector<std::string> Transcripts::remarks(const SpeechSet& set) const {
  std::vector<std::string> all;
  if (unknown.count > 0)
    all.push_back(unknown.text() + " (such as " + set.place(unknown.first) + ")");
  if (unusable > 0) {
    all.push_back(counted(unusable, "utterance") +
                  " left out: their texts have what the tokenizer lacks");
  }
  if (empty > 0) {
    all.push_back(counted(empty, "utterance") +
                  " left out: nothing of their texts is left by the rules of [tokenizer]");
  }
  if (impossible.count > 0) {
    all.push_back(counted(impossible.count, "utterance") +
                  " left out: their sounds come to fewer frames than CTC needs for their texts, "
                  "such as " +
                  set.place(impossible.first.front()));
  }
  return all;
}

Transcripts encode_transcripts(const SpeechSet& set, const text::TargetOptions& options,
                               const text::Tokenizer& tokenizer, int64_t threads) {
  const text::TargetText rules(options);
  const TranscriptEncoding encoding(rules, tokenizer);
  const auto size = static_cast<size_t>(set.size());
  std::vector<EncodedTranscript> encoded(size);
  for_each_on_threads((size + kTextsAtOnce - 1) / kTextsAtOnce, threads, [&](size_t part) {
    const size_t end = std::min(size, (part + 1) * kTextsAtOnce);
    for (size_t i = part * kTextsAtOnce; i < end; ++i) {
      encoded[i] = encoding.encode(set.text(static_cast<int64_t>(i)));
    }
  });
  TranscriptGathering gathering(set, options);
  for (size_t i = 0; i < size; ++i) {
    gathering.add(static_cast<int64_t>(i), std::move(encoded[i]));
  }
  return gathering.take();
}

int64_t ctc_frames(std::span<const int64_t> labels) {
  int64_t frames = std::ssize(labels);
  for (size_t i = 1; i < labels.size(); ++i) {
    if (labels[i] == labels[i - 1]) ++frames;
  }
  return frames;
}

void drop_impossible(Transcripts& transcripts,
                     const std::function<int64_t(double seconds)>& output_length) {
  UtteranceSamples& samples = transcripts.samples;
  UtteranceSamples kept;
  std::vector<std::string> texts;
  for (size_t i = 0; i < samples.ids.size(); ++i) {
    const auto target = samples.targets.sequence(static_cast<int64_t>(i));
    if (output_length(samples.seconds[i]) < ctc_frames(target)) {
      ++transcripts.impossible.count;
      auto& first = transcripts.impossible.first;
      if (first.size() < kMostImpossibleShown) first.push_back(samples.ids[i]);
      continue;
    }
    kept.ids.push_back(samples.ids[i]);
    kept.seconds.push_back(samples.seconds[i]);
    kept.targets.append(target);
    texts.push_back(std::move(transcripts.texts[i]));
  }
  samples = std::move(kept);
  transcripts.texts = std::move(texts);
}

std::vector<int64_t> encode_transcript(std::string_view text, const text::TargetText& rules,
                                       const text::Tokenizer& tokenizer) {
  return TranscriptEncoding(rules, tokenizer).encode(text).ids;
}

}  // namespace stretto::data
