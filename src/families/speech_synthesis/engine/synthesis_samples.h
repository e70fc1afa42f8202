#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "audio/features.h"
#include "families/speech_synthesis/engine/voice_set.h"
#include "families/speech_synthesis/speech_synthesis_options.h"
#include "families/speech_synthesis/voice_frames.h"
#include "models/synthesis/synthesis_model.h"
#include "report/sample.h"

/// What the report shows: sentences of validation as the model speaks them.
namespace stretto::tasks {

/// Frames [n, width] of a model as the sound room has them.
audio::Features features_of(const at::Tensor& frames);

/// decode.max_seconds and the other keys, in frames.
decoding::FrameLimits frame_limits(const experiment::SpeechSynthesisOptions& own);

/// Of clips that are spread over the set: the sound of the model and the recording as Griffin-Lim
/// gives it back, so that both have the same vocoder, each with a player; the frames of both, and
/// the attention. A sentence is cut at twice the length of its clip. Clips that cannot be read are
/// passed over.
/// @param count  clips, at most
std::vector<report::Sample> voice_samples(models::SynthesisModel& model, const VoiceSet& set,
                                          const experiment::VoiceFrames& frames,
                                          const experiment::SpeechSynthesisOptions& own,
                                          at::Device device, int64_t count);

}  // namespace stretto::tasks
