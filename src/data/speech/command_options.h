#pragma once

#include <string>

#include "config/field.h"

namespace stretto::data {

/// `[data.commands]`: the sets of Speech Commands (Warden 2018, arXiv:1804.03209), of data.format =
/// "speech_commands" (data/speech/speech_commands.h).
struct CommandOptions {
  std::string set = "all";
  std::string split = "auto";
  double unknown_share = 0.1;
  double silence_share = 0.1;
  double silence_seconds = 1;

  /// Whether there are the classes `unknown` and `silence`.
  bool has_drawn_classes() const { return set == "12"; }

  static auto fields() {
    using namespace config;
    using O = CommandOptions;
    return Fields{
        field(&O::set, "set",
              "which words are classes. 12: yes, no, up, down, left, right, on, off, stop and go, "
              "with `unknown`, which is drawn from the other words, and `silence`, which is cut "
              "from _background_noise_; training draws both anew in each epoch. 30, 35: the words "
              "of version 1 and of version 2; others are left out. all: each folder",
              one_of({"all", "12", "30", "35"}))
            .also_called({"dataset_version", "version"})
            .value_also_called("12", {"v1-12", "v1_12"})
            .value_also_called("30", {"v1-30", "v1_30"})
            .value_also_called("35", {"v2-35", "v2_35"}),
        field(&O::split, "split",
              "what data.valid and data.test take of a folder, of which data.train takes the rest. "
              "lists: validation_list.txt and testing_list.txt. hash: a tenth each, by the SHA-1 "
              "of the name of the speaker, as TensorFlow's which_set. auto: by the lists, if they "
              "are there",
              one_of({"auto", "lists", "hash"}), {.change = Change::kReading}),
        field(&O::unknown_share, "unknown_share",
              "utterances of the class `unknown`, as a share of those of the ten words",
              between(0, 10))
            .also_called({"unknown_percentage"}, "as a share, not in percent")
            .read_with("set", {"12"}),
        field(&O::silence_share, "silence_share",
              "utterances of the class `silence`, as a share of those of the ten words",
              between(0, 10))
            .also_called({"silence_percentage"}, "as a share, not in percent")
            .read_with("set", {"12"}),
        field(&O::silence_seconds, "silence_seconds", "how long they are", between(0.1, 60),
              {.unit = "seconds"})
            .also_called({"clip_duration_ms"}, "in seconds")
            .read_with("set", {"12"}),
    };
  }
};

}  // namespace stretto::data
