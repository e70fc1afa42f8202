#pragma once

#include <string>

#include "data/bad_samples.h"
#include "data/lines.h"
#include "data/media/media_rows.h"
#include "data/speech/speech_data_options.h"
#include "data/speech/utterance_rows.h"

namespace stretto::data {

/// Utterances of a manifest: CSV or TSV whose first row names the columns, or a JSON object a line.
/// Columns are those that `[data]` names, else the first of the names that are in use:
///
///     wav_filename,wav_filesize,transcript
///     {"audio_filepath": "a.wav", "offset": 1.5, "duration": 2.25, "text": "…"}
///     client_id  path  sentence
///
/// A relative path starts from data.audio_dir, else from the folder of the manifest. A path may
/// stand in several rows. A blank line is none.
///
/// A row without a path, with too few fields, or with a number that is none, is a bad sample.
/// Throws as BadSamples; Error(kUsage) for an ending that is no manifest's, and where there is no
/// column of paths or of texts, or none of a name that `[data]` has; and what the file's reader
/// throws.
UtteranceRows read_manifest_rows(const std::string& manifest, const SpeechDataOptions& options,
                                 BadSamples& bad);
/// The same of lines that are open already; their name is that of the manifest.
UtteranceRows read_manifest_rows(LineReader lines, MediaListFormat format,
                                 const SpeechDataOptions& options, BadSamples& bad);

/// A path as a row has it as an absolute one.
/// @param list  the file that names it
std::string sound_path(const std::string& path, const std::string& list,
                       const SpeechDataOptions& options);

}  // namespace stretto::data
