#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "config/problem.h"
#include "data/bad_samples.h"
#include "data/documents/documents_build.h"
#include "experiment/preflight.h"
#include "families/text/text_lookalikes.h"

namespace stretto::experiment {

/// What training would stop at in the documents of data.train and data.valid, read as far as the
/// time allows, and with PreflightOptions::doubts what looks like blank lines or line ends there.
/// @param options  the family's `[data]`: train, valid, and how bad samples are taken
/// @param known    problems of the configuration: the files of a key that has one are not read
/// @param open     gives a reader: open(path, bad) has next(text, begins_document) and
///                 line_number(), as data::DocumentLines has
template <class Options, class Open>
Preflight look_at_documents(const Options& options, const std::vector<config::Problem>& known,
                            const PreflightOptions& how, const Open& open) {
  Preflight found;
  const PreflightTimer time(how);
  const auto read = [&](const char* key, Stage stage, const std::vector<std::string>& files) {
    if (files.empty() || config::is_unreliable(known, key)) return;
    note_stop(found, stage, key, [&] {
      bool has_text = false;
      std::optional<TextLookalikes> looks;
      if (how.doubts) looks.emplace();
      data::BadSamples bad(data::bad_sample_rule(options));
      for (const auto& path : files) {
        auto reader = open(path, bad);
        std::string_view text;
        for (bool begins = false; reader.next(text, begins);) {
          has_text = has_text || !text.empty();
          if (looks) looks->read(path, text);
          if (time.is_left()) continue;
          if (looks) looks->tell(key, found);
          found.unread.push_back(
              {key, path + " behind line " + with_thousands(reader.line_number())});
          return;
        }
      }
      if (looks) looks->tell(key, found);
      if (!has_text) data::throw_no_documents(key, files, bad.left_out());
    });
  };
  read("data.train", Stage::kTraining, options.train);
  read("data.valid", Stage::kValidation, options.valid);
  return found;
}

}  // namespace stretto::experiment
