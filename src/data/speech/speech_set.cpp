#include "data/speech/speech_set.h"

#include <algorithm>
#include <array>
#include <exception>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/system_info.h"
#include "base/text.h"
#include "data/cache_folder.h"
#include "data/speech/speech_commands.h"
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

bool has_word(const std::vector<std::string_view>& words, std::string_view text) {
  return words.empty() || std::ranges::binary_search(words, text);
}

/// Whether data.commands.set says what a path has. Tests may be of another format, whose texts are
/// the classes.
bool has_commands(const SpeechDataOptions& options, const SpeechInput& input, bool is_training) {
  if (options.commands.set == "all") return false;
  if (input.is_undecided || input.format == SpeechFormat::kSpeechCommands) return true;
  if (!is_training) return false;
  throw Error(ExitCode::kUsage,
              input.path + ": data.commands.set = \"" + options.commands.set +
                  "\", and the path is read as data.format = \"" + name_of(input.format) + "\"",
              "set data.format = \"speech_commands\", or leave data.commands out");
}

/// Each word of a set that training is for has an utterance.
void require_words(const SpeechSet& set, const SpeechDataOptions& options, const std::string& key) {
  std::set<std::string_view> missing;
  for (const auto word : command_words(options.commands.set)) missing.insert(word);
  for (int64_t i = 0; i < set.size() && !missing.empty(); ++i) missing.erase(set.text(i));
  if (missing.empty()) return;
  throw Error(ExitCode::kBadData,
              key + ": has no utterance of " +
                  join(std::vector<std::string>(missing.begin(), missing.end()), ", ") +
                  ", which data.commands.set = \"" + options.commands.set + "\" has",
              "choose the set that the data are: version 1 has 30 words, version 2 has 35");
}

void add_left_out(const LeftOut& more, LeftOut& all) {
  all.count += more.count;
  for (const auto& one : more.first) {
    if (all.first.size() < kNamedBadSamples) all.first.push_back(one);
  }
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
  return *sources_[kept_[static_cast<size_t>(sample)].pick.source];
}
int64_t SpeechSet::number_of(int64_t sample) const {
  return kept_[static_cast<size_t>(sample)].pick.number;
}

SpeechPick SpeechSet::pick_of(int64_t sample, const SampleDraw& draw) const {
  const Kept& kept = kept_[static_cast<size_t>(sample)];
  if (!is_drawn_anew(sample)) return kept.pick;
  const int64_t drawn = drawn_of(sample);
  if (kept.label == Label::kUnknown) return draws_.unknown(drawn, draw);
  return draws_.silence(drawn - draws_.num_unknown(), draw);
}

UtteranceFacts SpeechSet::facts(int64_t sample) const {
  const Kept& kept = kept_[static_cast<size_t>(sample)];
  if (is_drawn_anew(sample)) {
    const int64_t drawn = drawn_of(sample);
    return kept.label == Label::kUnknown ? draws_.unknown_facts(drawn)
                                         : draws_.silence_facts(drawn - draws_.num_unknown());
  }
  UtteranceFacts facts = source_of(sample).facts(number_of(sample));
  if (kept.pick.part.end > 0) facts.end = facts.begin + kept.pick.part.end;
  facts.begin += kept.pick.part.begin;
  return facts;
}
double SpeechSet::seconds(int64_t sample) const {
  return facts(sample).seconds();
}
std::string_view SpeechSet::text(int64_t sample) const {
  switch (kept_[static_cast<size_t>(sample)].label) {
    case Label::kUnknown:
      return kUnknownCommand;
    case Label::kSilence:
      return kSilenceCommand;
    case Label::kOwn:
      break;
  }
  return source_of(sample).text(number_of(sample));
}
std::string_view SpeechSet::id(int64_t sample) const {
  if (const int64_t drawn = drawn_of(sample); drawn >= 0) {
    const std::string& name = drawn_names_[static_cast<size_t>(drawn)];
    if (!name.empty()) return name;
  }
  return source_of(sample).id(number_of(sample));
}
std::string_view SpeechSet::speaker(int64_t sample) const {
  if (is_drawn_anew(sample)) return "";
  return source_of(sample).speaker(number_of(sample));
}
std::string SpeechSet::place(int64_t sample) const {
  if (is_drawn_anew(sample)) return where_ + ": " + std::string(id(sample));
  return source_of(sample).place(number_of(sample));
}
std::string SpeechSet::path(int64_t sample) const {
  if (is_drawn_anew(sample)) return where_ + ": " + std::string(id(sample));
  return source_of(sample).path(number_of(sample));
}
int64_t SpeechSet::rate(int64_t sample) const {
  return facts(sample).rate;
}
int64_t SpeechSet::channels(int64_t sample) const {
  return facts(sample).channels;
}

std::vector<float> SpeechSet::read(int64_t sample, int64_t rate, const SampleDraw& draw) const {
  const SpeechPick pick = pick_of(sample, draw);
  return sources_[pick.source]->read_part(pick.number, rate, pick.part);
}

std::optional<std::vector<float>> SpeechSet::load(int64_t sample, int64_t rate,
                                                  const SampleDraw& draw) const {
  std::optional<std::vector<float>> samples;
  try {
    samples = read(sample, rate, draw);
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

std::string SpeechSet::clipped() const {
  int64_t count = 0;
  std::string first;
  for (const auto& source : sources_) {
    count += source->clipped().count();
    if (first.empty()) first = source->clipped().first();
  }
  return count == 0 ? "" : clipped_text(count, first);
}

std::string SpeechSet::refusal() const {
  for (const auto& source : sources_) {
    if (auto refusal = source->refusal(); !refusal.empty()) return refusal;
  }
  return "";
}

bool SpeechSet::is_outside(double seconds, const SpeechDataOptions& options) {
  if (seconds < options.min_seconds) {
    ++outside_.too_short;
    outside_.seconds_too_short += seconds;
    return true;
  }
  if (options.max_seconds == 0 || seconds <= options.max_seconds) return false;
  ++outside_.too_long;
  outside_.seconds_too_long += seconds;
  return true;
}

void SpeechSet::add(std::shared_ptr<const SpeechSource> source, const SpeechDataOptions& options,
                    const AddedAs& as, FirstOfIds* first_of_ids, BadSamples& bad) {
  const auto& words = command_words(as.has_commands ? options.commands.set : "all");
  const auto number = static_cast<uint32_t>(sources_.size());
  for (int64_t i = 0; i < source->size(); ++i) {
    const SpeechPick pick{.source = number, .number = static_cast<uint32_t>(i)};
    const UtteranceFacts facts = source->facts(i);
    const std::string_view text = source->text(i);
    if (first_of_ids != nullptr && source->has_own_id(i)) {
      const auto [first, is_new] = first_of_ids->try_emplace(source->id(i), pick);
      if (!is_new) {
        const SpeechPick& earlier = first->second;
        bad.add(SampleError(source->place(i),
                            ": has the id `" + printable(source->id(i), 100) + "` of " +
                                sources_[earlier.source]->place(earlier.number),
                            "give each utterance an id of its own"));
        continue;
      }
    }
    if (text == kNoiseFolder) {
      draws_.add_noise(pick, facts);
    } else if (as.is_training && is_outside(facts.seconds(), options)) {
      continue;
    } else if (has_word(words, text)) {
      kept_.push_back({.pick = pick});
      total_seconds_ += facts.seconds();
    } else {
      ++num_of_other_words_;
      draws_.add_other(pick, facts);
    }
  }
  sources_.push_back(std::move(source));
  num_own_ = size();
}

void SpeechSet::add_drawn(const SpeechDataOptions& options, const std::string& where,
                          bool is_training) {
  if (!options.commands.has_drawn_classes()) return;
  const auto refuse = [&](const std::string& what, const std::string& key) {
    throw Error(ExitCode::kBadData, where + ": " + what,
                "unpack Speech Commands once more, or set data.commands." + key + " = 0");
  };
  if (!draws_.has_others() && options.commands.unknown_share > 0) {
    refuse("has no word beside the ten, of which `unknown` could be drawn", "unknown_share");
  }
  if (!draws_.has_noises() && options.commands.silence_share > 0) {
    refuse("has no sound in " + std::string(kNoiseFolder) + ", of which `silence` is cut",
           "silence_share");
  }
  draws_.set_up(options.commands, num_own_);
  draws_anew_ = is_training;
  where_ = where;
  for (int64_t i = 0; i < draws_.num_unknown(); ++i) {
    kept_.push_back({.pick = draws_.unknown(i, {}), .label = Label::kUnknown});
    drawn_names_.push_back(is_training ? "unknown " + std::to_string(i) : "");
  }
  for (int64_t i = 0; i < draws_.num_silence(); ++i) {
    const SpeechPick pick = draws_.silence(i, {});
    kept_.push_back({.pick = pick, .label = Label::kSilence});
    const SpeechSource& noise = *sources_[pick.source];
    const double begin =
        static_cast<double>(pick.part.begin) / static_cast<double>(noise.facts(pick.number).rate);
    drawn_names_.push_back(is_training
                               ? "silence " + std::to_string(i)
                               : std::string(noise.id(pick.number)) + "#" + fixed(begin, 3));
  }
  for (int64_t i = num_own_; i < size(); ++i) total_seconds_ += seconds(i);
}

std::shared_ptr<const SpeechSet> open_speech(const SpeechDataOptions& options,
                                             const std::string& key,
                                             const std::vector<std::string>& paths, CacheUse use) {
  const int64_t threads = options.threads > 0 ? options.threads : usable_cores();
  auto set = std::make_shared<SpeechSet>();
  LeftOut left_out;
  const bool is_training = key == "data.train";
  const BadSampleRule rule = bad_sample_rule(options);
  const auto inputs = speech_inputs(options, key, paths);
  SpeechSet::FirstOfIds first_of_ids;
  BadSamples doubles(rule);  // of two paths
  bool any_commands = false;
  for (const auto& input : inputs) {
    const SpeechSet::AddedAs as{.is_training = is_training,
                                .has_commands = has_commands(options, input, is_training)};
    any_commands = any_commands || as.has_commands;
    auto source = open_speech_source(input, options, threads, use);
    add_left_out(source->left_out(), left_out);
    set->add(std::move(source), options, as, inputs.size() > 1 ? &first_of_ids : nullptr, doubles);
  }
  doubles.end_file();
  add_left_out(doubles.left_out(), left_out);
  require_within(rule, left_out);
  const std::string outside = set->outside_.text(options);
  if (set->size() == 0) throw_nothing(key, paths, left_out, outside);
  if (!outside.empty()) log::info(key + ": left out " + outside);
  if (is_training) require_words(*set, options, key);
  if (set->num_of_other_words_ > 0 && !options.commands.has_drawn_classes()) {
    log::info(key + ": left out " + counted(set->num_of_other_words_, "utterance") +
              " of words that data.commands.set = \"" + options.commands.set + "\" lacks");
  }
  if (any_commands) set->add_drawn(options, paths.front(), is_training);
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
