#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "data/bad_samples.h"
#include "data/data_file.h"
#include "data/lines.h"

namespace stretto::data {

/// What a row of a manifest says of a sound or a picture.
struct MediaRow {
  int64_t line = 0;                 ///< of the manifest, from 1
  std::string path;                 ///< as it stands there
  std::string text;                 ///< a transcript, a label; empty where no column is named
  double offset = 0, duration = 0;  ///< in seconds, of a part of a sound; duration 0: to its end
};

/// The columns of a manifest, by their names: in the header of CSV and TSV, which is the first row,
/// and in each object of JSON lines. A file ends in .csv, .tsv or .jsonl (.json), maybe packed.
struct MediaColumns {
  std::string path = "path";
  std::string text = {};  ///< this one and the next two: empty = there is none
  std::string offset = {}, duration = {};
};

/// Reads a manifest from its first row to its last.
///
/// A row without a path, with too few fields or with a number that is none is a bad sample. A blank
/// line is none. Throws as BadSamples does; Error(kUsage) for an ending that is no manifest's and
/// for a column that is not there; and what the file's reader throws.
void read_media_rows(const std::string& manifest, const MediaColumns& columns, BadSamples& bad,
                     const std::function<void(MediaRow)>& take);

enum class MediaListFormat : uint8_t { kCsv, kTsv, kJsonLines };
/// By the ending of a manifest, without that of its packing. Throws Error(kUsage) for another one.
MediaListFormat media_list_format(const std::string& manifest);
/// The same of lines that are open already.
void read_media_rows(LineReader lines, MediaListFormat format, const MediaColumns& columns,
                     BadSamples& bad, const std::function<void(MediaRow)>& take);

/// A path of `[data]` as a manifest whose files are looked at too, to tell later what has changed.
DataFile media_manifest(std::string key, std::string path, const MediaColumns& columns,
                        const BadSampleRule& rule);

}  // namespace stretto::data
