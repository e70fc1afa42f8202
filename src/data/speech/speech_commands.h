#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/bad_samples.h"
#include "data/speech/speech_data_options.h"
#include "data/speech/speech_layouts.h"

/// Speech Commands (Warden 2018, arXiv:1804.03209) as it is distributed: a folder of sounds a word,
/// _background_noise_, validation_list.txt and testing_list.txt.
namespace stretto::data {

/// Texts of the classes that are no words.
inline constexpr std::string_view kUnknownCommand = "unknown", kSilenceCommand = "silence";
/// The folder of noises, and the text of their rows. No other layout gives this text.
inline constexpr std::string_view kNoiseFolder = "_background_noise_";

/// The lists of the sounds for validation and for tests.
inline constexpr std::array<std::string_view, 2> kCommandLists{"validation_list.txt",
                                                               "testing_list.txt"};

/// NAME of NAME_nohash_N.wav; empty for other names.
std::string_view speaker_of_command(std::string_view file_name);

/// The words of data.commands.set, sorted; empty = any ("all").
const std::vector<std::string_view>& command_words(const std::string& set);

/// The set that a file belongs to by its name: a tenth each is for validation and for tests, by the
/// SHA-1 of what the name has in front of `_nohash_` (TensorFlow's which_set), so that a speaker is
/// in one set alone.
SpeechSplit split_by_hash(std::string_view file_name);

/// The utterances of one set, `files.split`, and all noises, whose text is kNoiseFolder. A word is
/// the folder of its sound; other folders that begin with `_` are left out. The speaker of
/// NAME_nohash_N is NAME.
///
/// A bad sample is a line of a list whose sound is not there, and a sound in no folder. Throws
/// Error(kBadData) where data.commands.split or one list asks for a list that is not there.
UtteranceRows read_speech_commands(const LayoutFiles& files, const SpeechDataOptions& options,
                                   BadSamples& bad);

}  // namespace stretto::data
