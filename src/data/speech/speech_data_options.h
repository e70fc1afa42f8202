#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/field.h"
#include "data/bad_samples.h"
#include "data/speech/command_options.h"

namespace stretto::data {

/// `[data]` of sounds with what is said in them: where they are, how their texts stand beside them,
/// and how they fall into micro-batches. What is made of the samples of a sound is
/// audio/feature_keys.h, of a text text/target_options.h.
struct SpeechDataOptions {
  std::vector<std::string> train, valid, test;
  std::string format = "auto";
  std::string path, text, offset, duration, id, speaker;
  std::string audio_dir;
  std::string name_pattern = "{text}";
  std::vector<std::string> label_words;
  CommandOptions commands;
  double min_seconds = 0.1;
  double max_seconds = 16.7;
  std::string bad_samples = "skip";  ///< a damaged file is no reason to end an epoch
  int64_t max_bad_samples = 1000;
  double batch_seconds = 160;
  int64_t max_samples = 0;
  double bucket_seconds = 0.5;
  std::string cache_dir;
  int64_t prefetch = 8;
  int64_t threads = 0;

  static auto file_fields() {
    using namespace config;
    using O = SpeechDataOptions;
    const Meta path{.is_path = true, .takes_patterns = true};
    const Meta free_path{.change = Change::kFree, .is_path = true, .takes_patterns = true};
    return Fields{
        field(&O::train, "train",
              "sounds and their texts for training: folders, tar or tar.gz files, or manifests, as "
              "data.format says; a last name such as train-*.csv stands for several files",
              any(), path)
            .also_called({"train_manifest", "train_files", "manifest_filepath", "dataset_files",
                          "train_csv", "training_files", "data_dir", "train_dir"}),
        field(&O::valid, "valid", "the same for validation", any(), path)
            .also_called({"dev", "valid_manifest", "validation_files", "dev_files", "val_manifest",
                          "validation_ds", "valid_dir"}),
        field(&O::test, "test", "the same: what `stretto eval` takes by default", any(), free_path)
            .also_called({"test_manifest", "test_files", "test_csv", "test_dir"}),
    };
  }

  static auto reading_fields() {
    using namespace config;
    using O = SpeechDataOptions;
    const Meta reading{.change = Change::kReading};
    return Fields{
        field(
            &O::format, "format",
            "how texts stand beside sounds. auto: as the files of each path show. librispeech: "
            "folders with NAME.trans.txt. manifest: CSV, TSV or JSON lines whose rows name sounds "
            "(of DeepSpeech, NeMo, Common Voice). kaldi: a folder with wav.scp, text, and "
            "maybe "
            "segments and utt2spk. ljspeech: metadata.csv beside the folder wavs, or a list "
            "ID|TEXT or PATH|TEXT. m_ailabs: folders of these. text_files: NAME.txt beside each "
            "sound. class_folders: the folder of a sound is its text. labelled_names: the name of "
            "a sound, as data.name_pattern says. speech_commands: class_folders, of which each "
            "key takes its set, as data.commands says",
            one_of({"auto", "librispeech", "manifest", "kaldi", "ljspeech", "m_ailabs",
                    "text_files", "class_folders", "labelled_names", "speech_commands"}),
            reading)
            .also_called({"dataset_type", "file_format", "dataset_format"})
            .value_also_called("librispeech", {"libri", "trans_txt"})
            .value_also_called("manifest", {"csv", "tsv", "jsonl", "json", "nemo", "deepspeech",
                                            "common_voice", "commonvoice"})
            .value_also_called("ljspeech", {"lj", "ljspeech_list"})
            .value_also_called("class_folders", {"folder", "folders"})
            .value_also_called("labelled_names", {"file_names", "names", "fsdd", "yesno"}),
        field(
            &O::path, "path",
            "column of a manifest: the path of a sound, relative to data.audio_dir; empty = the "
            "first of wav_filename, audio_filepath, audio_path, audio, path, file, file_name, wav",
            any(), reading)
            .also_called({"path_column", "audio_column", "audio_column_name", "file_column"}),
        field(
            &O::text, "text",
            "column of a manifest: what is said; empty = the first of transcript, text, sentence, "
            "transcription, normalized_text, label, command. Of ljspeech and m_ailabs: raw or "
            "normalised, which is what empty means",
            any(), reading)
            .also_called({"text_column", "text_column_name", "transcript_column", "label_column"}),
        field(&O::offset, "offset",
              "column of a manifest: the second at which the sample begins in its file; empty = "
              "offset, start or begin, if there is one",
              any(), reading)
            .also_called({"offset_column", "start_column"}),
        field(&O::duration, "duration",
              "column of a manifest: the seconds that it lasts; empty = duration, if there is one",
              any(), reading)
            .also_called({"duration_column"}),
        field(&O::id, "id",
              "column of a manifest: the name of the utterance, each another one; empty = id, "
              "utt_id, utterance_id or key, if there is one",
              any(), reading)
            .also_called({"id_column", "utt_column"}),
        field(&O::speaker, "speaker",
              "column of a manifest: who speaks; empty = speaker, speaker_id, spk or client_id, if "
              "there is one",
              any(), reading)
            .also_called({"speaker_column"}),
        field(&O::audio_dir, "audio_dir",
              "folder that relative paths in manifests, lists and wav.scp start from; empty = the "
              "folder of the file that names them",
              any(), {.change = Change::kReading, .is_path = true})
            .also_called({"audio_root", "root", "audio_path_prefix", "clips_dir"}),
        field(&O::name_pattern, "name_pattern",
              "of labelled_names: what a file name has in front of its ending, such as "
              "{text}_{speaker}_{take}: the text, the speaker and the id are kept, other names are "
              "passed over; what stands between braces lies between the same characters in a name. "
              "In the text, `_` is a space",
              any(), reading)
            .also_called({"file_pattern", "label_pattern"}),
        field(
            &O::label_words, "label_words",
            "\"LABEL WORDS\" replaces a word of a text that is that label, such as \"0 zero\"; of "
            "labelled_names and class_folders",
            any(), reading)
            .also_called({"label_map"}),
        field(&O::commands, "commands", "the sets of Speech Commands")
            .also_called({"speech_commands"}),
    };
  }

  static auto limit_fields() {
    using namespace config;
    using O = SpeechDataOptions;
    return Fields{
        field(&O::min_seconds, "min_seconds", "training leaves out, and counts, what is shorter",
              at_least(0), {.unit = "seconds"})
            .also_called({"min_duration", "min_audio_len", "minimum_duration"}),
        field(&O::max_seconds, "max_seconds",
              "training leaves out, and counts, what is longer; 0 = nothing", between(0, 3600),
              {.unit = "seconds"})
            .also_called({"max_duration", "max_audio_len", "maximum_duration", "max_length"}),
    }
        .with(bad_sample_fields<O>());
  }

  static auto batch_fields() {
    using namespace config;
    using O = SpeechDataOptions;
    return Fields{
        field(&O::batch_seconds, "batch_seconds",
              "bound of the seconds of all sounds of one micro-batch; one that is longer is a "
              "micro-batch of its own",
              between(0.01, 1e6), {.unit = "seconds"})
            .also_called({"batch_duration", "max_batch_seconds", "max_duration_per_batch",
                          "batch_length_seconds"}),
        field(&O::max_samples, "max_samples",
              "bound of utterances in one micro-batch, beside batch_seconds; 0 = none", at_least(0),
              {.unit = "utterances"})
            .also_called({"batch_size", "batch_size_per_gpu", "max_batch_size", "mini_batch"}),
        field(&O::bucket_seconds, "bucket_seconds",
              "sounds whose lengths differ by less change places between micro-batches in each "
              "epoch; 0 = of equal length alone",
              between(0, 3600), {.unit = "seconds"})
            .also_called({"bucket_width", "bucketing_seconds"}),
        field(&O::cache_dir, "cache_dir",
              "where headers of sounds, texts, and sounds from tar.gz files, are kept for the next "
              "start; empty = stretto in the user's cache folder",
              any(), {.change = Change::kFree, .is_path = true})
            .also_called({"cache", "dataset_cache_dir", "data_cache_dir"}),
        field(&O::prefetch, "prefetch", "micro-batches that are made ready ahead of the model",
              between(1, 1024),
              {.unit = "micro-batches", .change = Change::kFree, .per_process = true})
            .also_called({"prefetch_factor", "data_buffer_size"}),
        field(&O::threads, "threads",
              "that decode sounds and make features of them; 0 = the cores of this process",
              between(0, 1024), {.change = Change::kFree, .per_process = true})
            .also_called({"num_workers", "dataloader_num_workers", "workers", "data_threads"},
                         "threads, not processes"),
    };
  }

  static auto fields() {
    return file_fields().with(reading_fields()).with(limit_fields()).with(batch_fields());
  }
};

}  // namespace stretto::data
