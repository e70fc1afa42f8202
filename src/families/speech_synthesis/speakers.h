#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/labelled/labels.h"
#include "data/speech/speech_set.h"

/// Who speaks in the clips of a run; no libtorch.
namespace stretto::experiment {

/// The speakers of a set in the order of their bytes. Nothing where there is one, or no clip says
/// who speaks. Throws Error(kBadData) where some clips have a speaker and others none.
std::optional<data::Labels> speakers_in(const data::SpeechSet& clips);

/// The number of each clip's speaker, [clips]; empty where the run has one.
/// @param known  those of the run
/// Throws Error(kBadData) for a clip of an unknown speaker, or of none.
std::vector<int64_t> speaker_numbers(const data::SpeechSet& clips,
                                     const std::optional<data::Labels>& known);

}  // namespace stretto::experiment
