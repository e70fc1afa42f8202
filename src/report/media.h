#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "report/sample.h"

/// Sounds and pictures among the samples of a report. They lie in report.json as base64, and in the
/// page as data: URIs.
namespace stretto::report {

/// The most bytes of one sound or picture: 20 s of speech (mono, 24 kHz, 16 bits).
inline constexpr size_t kMaxMedia = size_t{1} << 20;
/// The most bytes of all sounds and pictures of one report.
inline constexpr size_t kMaxAllMedia = size_t{8} << 20;

/// What a report keeps of a sample. A file that is larger than kMaxMedia or than `bytes_left`, of
/// another kind, or not of the kind that it claims, is left out as a whole, and the note says so: a
/// part of it could not be played. Idempotent.
/// @param bytes_left  of kMaxAllMedia; what is kept is taken off
MediaSample kept_media(const MediaSample& sample, size_t& bytes_left);

/// Whether a report would keep these bytes, if nothing else were in it; never of none.
bool is_keepable(const MediaSample& sample);

/// The bytes of all sounds and pictures.
size_t media_bytes(const std::vector<Sample>& samples);

/// A player or a picture, with the words in front. The sample is one of kept_media().
std::string render_media(const MediaSample& sample);

/// Whether a page of these samples has a player, and needs a policy that lets it play data: URIs.
bool has_sound(const std::vector<Sample>& samples);

}  // namespace stretto::report
