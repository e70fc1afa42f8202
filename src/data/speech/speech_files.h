#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/data_file.h"
#include "data/loading.h"
#include "data/speech/speech_data_options.h"

namespace stretto::data {

/// The paths of `[data]` with the kinds by which data.json has them: a folder with all its files, a
/// manifest with the sounds that it names and that are there, an archive as bytes. Of a Kaldi
/// folder wav.scp is the manifest, and the texts beside it are files of their own. A path that
/// cannot be told, as one that is not there, stays as it is. data.audio_dir is none of them.
/// @param files  of the path keys (experiment/data_files.h)
std::vector<DataFile> speech_data_files(const SpeechDataOptions& options,
                                        const std::vector<DataFile>& files);

/// How many utterances some paths have, by names of files and texts alone; nothing where they would
/// have to be unpacked for it, as archives. Bad samples, and what the limits leave out, count.
/// @param key  whose paths these are. Throws as speech_inputs() (data/speech/speech_inputs.h)
std::optional<int64_t> count_utterances(const SpeechDataOptions& options,
                                        const std::vector<std::string>& paths,
                                        const std::string& key = "data.train");

/// How far ahead micro-batches are made, and on how many threads.
/// @param cores  of this process
Loading speech_loading(const SpeechDataOptions& options, int64_t cores);

}  // namespace stretto::data
