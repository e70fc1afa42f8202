#include "data/speech/speech_set.h"

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/system_info.h"
#include "base/text.h"
#include "data/cache_folder.h"
#include "data/speech/speech_inputs.h"

namespace stretto::data {
namespace {

/// What is said in a part of a file, for comparisons: the same sound in any place.
uint64_t sound_hash(const UtteranceFacts& facts) {
  const std::array<uint64_t, 3> words{facts.hash, static_cast<uint64_t>(facts.begin),
                                      static_cast<uint64_t>(facts.end)};
  return xxh3_64(words.data(), sizeof words);
}

[[noreturn]] void throw_nothing(const std::string& key, const std::vector<std::string>& paths,
                                const LeftOut& left_out, const std::string& outside) {
  throw Error(ExitCode::kBadData,
              key + ": there is no utterance in " +
                  (paths.empty() ? "it" : printable(paths.front(), 4096)) +
                  (left_out.count > 0 ? "; " + left_out.text() : "") +
                  (outside.empty() ? "" : "; " + outside),
              "look at data.format, and at data.min_seconds and data.max_seconds for training");
}

std::string limit_text(int64_t count, double seconds, const std::string& limit) {
  return counted(count, "utterance") + " (" + human_duration(seconds) + ") " + limit;
}

}  // namespace

std::string OutsideLimits::text(const SpeechDataOptions& options) const {
  std::vector<std::string> parts;
  if (too_short > 0) {
    parts.push_back(limit_text(too_short, seconds_too_short,
                               "shorter than data.min_seconds = " + shortest(options.min_seconds)));
  }
  if (too_long > 0) {
    parts.push_back(limit_text(too_long, seconds_too_long,
                               "longer than data.max_seconds = " + shortest(options.max_seconds)));
  }
  return join(parts, ", ");
}

const SpeechSource& SpeechSet::source_of(int64_t sample) const {
  return *sources_[kept_[static_cast<size_t>(sample)].source];
}
int64_t SpeechSet::number_of(int64_t sample) const {
  return kept_[static_cast<size_t>(sample)].number;
}

UtteranceFacts SpeechSet::facts(int64_t sample) const {
  return source_of(sample).facts(number_of(sample));
}
double SpeechSet::seconds(int64_t sample) const {
  return facts(sample).seconds();
}
std::string_view SpeechSet::text(int64_t sample) const {
  return source_of(sample).text(number_of(sample));
}
std::string_view SpeechSet::id(int64_t sample) const {
  return source_of(sample).id(number_of(sample));
}
std::string_view SpeechSet::speaker(int64_t sample) const {
  return source_of(sample).speaker(number_of(sample));
}
std::string SpeechSet::place(int64_t sample) const {
  return source_of(sample).place(number_of(sample));
}
std::string SpeechSet::path(int64_t sample) const {
  return source_of(sample).path(number_of(sample));
}
int64_t SpeechSet::rate(int64_t sample) const {
  return facts(sample).rate;
}
int64_t SpeechSet::channels(int64_t sample) const {
  return facts(sample).channels;
}

std::vector<float> SpeechSet::read(int64_t sample, int64_t rate) const {
  return source_of(sample).read(number_of(sample), rate);
}

std::optional<std::vector<float>> SpeechSet::load(int64_t sample, int64_t rate) const {
  std::optional<std::vector<float>> samples;
  try {
    samples = read(sample, rate);
  } catch (const Error& error) {
    if (error.code() != ExitCode::kBadData) throw;
    // The path is made here, and not for each sound.
    const auto failure = std::current_exception();
    faults_->take(sample, path(sample), [&] { std::rethrow_exception(failure); });
  }
  return samples;
}

uint64_t SpeechSet::hash() const {
  Xxh3Stream all;
  for (int64_t i = 0; i < size(); ++i) {
    const uint64_t sound = sound_hash(facts(i));
    all.update(&sound, sizeof sound);
    all.update(text(i).data(), text(i).size());
    all.update("\n", 1);
  }
  return all.digest();
}

std::string SpeechSet::refusal() const {
  for (const auto& source : sources_) {
    if (auto refusal = source->refusal(); !refusal.empty()) return refusal;
  }
  return "";
}

void SpeechSet::add(std::shared_ptr<const SpeechSource> source, const SpeechDataOptions& options,
                    bool is_limited) {
  const auto number = static_cast<uint32_t>(sources_.size());
  for (int64_t i = 0; i < source->size(); ++i) {
    const double seconds = source->facts(i).seconds();
    if (is_limited && seconds < options.min_seconds) {
      ++outside_.too_short;
      outside_.seconds_too_short += seconds;
    } else if (is_limited && options.max_seconds > 0 && seconds > options.max_seconds) {
      ++outside_.too_long;
      outside_.seconds_too_long += seconds;
    } else {
      kept_.push_back({.source = number, .number = static_cast<uint32_t>(i)});
      total_seconds_ += seconds;
    }
  }
  sources_.push_back(std::move(source));
}

std::shared_ptr<const SpeechSet> open_speech(const SpeechDataOptions& options,
                                             const std::string& key,
                                             const std::vector<std::string>& paths, CacheUse use) {
  const int64_t threads = options.threads > 0 ? options.threads : usable_cores();
  auto set = std::make_shared<SpeechSet>();
  LeftOut left_out;
  for (const auto& input : speech_inputs(options, key, paths)) {
    auto source = open_speech_source(input, options, threads, use);
    left_out.count += source->left_out().count;
    for (const auto& one : source->left_out().first) {
      if (left_out.first.size() < kNamedBadSamples) left_out.first.push_back(one);
    }
    set->add(std::move(source), options, key == "data.train");
  }
  const BadSampleRule rule = bad_sample_rule(options);
  require_within(rule, left_out);
  const std::string outside = set->outside_.text(options);
  if (set->size() == 0) throw_nothing(key, paths, left_out, outside);
  if (!outside.empty()) log::info(key + ": left out " + outside);
  if (const std::string refusal = set->refusal(); !refusal.empty()) {
    log::warn(key + ": " + refusal + "; each start looks at the sounds anew: " + kCacheRemedy);
  }
  set->faults_ = std::make_unique<MediaFaults>(rule, std::move(left_out));
  return set;
}

SharedSounds shared_sounds(const SpeechSet& training, const SpeechSet& other) {
  std::vector<std::pair<uint64_t, int64_t>> hashes;
  hashes.reserve(static_cast<size_t>(training.size()));
  for (int64_t i = 0; i < training.size(); ++i) {
    hashes.emplace_back(sound_hash(training.facts(i)), i);
  }
  std::sort(hashes.begin(), hashes.end());
  SharedSounds shared;
  for (int64_t i = 0; i < other.size(); ++i) {
    const uint64_t hash = sound_hash(other.facts(i));
    const auto found = std::lower_bound(hashes.begin(), hashes.end(), std::pair{hash, int64_t{0}});
    if (found == hashes.end() || found->first != hash) continue;
    if (shared.count++ > 0) continue;
    shared.first = i;
    shared.first_in_training = found->second;
  }
  return shared;
}

std::string shared_sounds_text(const SpeechSet& training, const SpeechSet& other) {
  const SharedSounds shared = shared_sounds(training, other);
  if (shared.count == 0) return "";
  return "utterances with the sound of one for training: " + with_thousands(shared.count) + " of " +
         with_thousands(other.size()) + ", such as " + other.place(shared.first) + ", as " +
         training.place(shared.first_in_training);
}

}  // namespace stretto::data
