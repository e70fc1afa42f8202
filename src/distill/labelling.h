#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "distill/label_parts.h"
#include "distill/labels_record.h"

namespace stretto::distill {

/// How a teacher labels texts.
struct LabellingSetup {
  std::filesystem::path folder;  ///< of the labels
  std::vector<experiment::TextToLabel> texts;
  /// All that the labels depend on, the content of the texts too: teacher, checkpoints, keys. The
  /// folder holds the labels of one.
  std::string fingerprint;
  int processes = 1;
  int64_t part_lines = kPartLines;
  /// The words of a process that reads a file and prints a label for each of its lines:
  /// `stretto infer`, but for tests.
  std::function<std::vector<std::string>(const std::filesystem::path& source)> command;
  std::chrono::milliseconds tick{50};  ///< between two looks at the processes
};

/// The labels of all texts.
struct Labels {
  std::vector<experiment::LabelledText> texts;  ///< in the order of the setup
  int64_t lines = 0;                            ///< with a label
  int64_t left_out = 0;                         ///< bad lines, and those with an empty label
};

/// Labels texts with several processes at a time, part by part. What is done stays done: after a
/// signal, a failure or a killed machine, the same setup goes on behind the last whole part, and
/// does nothing where all is there. The result depends neither on the number of processes nor on
/// how often it was begun. Finished labels are read once more, and compared with their hashes.
class Labelling {
 public:
  /// Takes the lock of the folder, and makes it where it is not there. Throws Error(kUsage) when
  /// another process has the lock, and when the folder has labels with another fingerprint.
  explicit Labelling(LabellingSetup setup);

  /// @return 0 once all is labelled, ExitCode::kInterrupted after a signal, else the exit code of
  ///         the process that failed. Throws as cut_texts() and join_parts() do, and
  ///         Error(kBadData) for finished labels that are not what the teacher wrote.
  int run();

  /// Once run() gave 0.
  const Labels& labels() const { return labels_; }

 private:
  struct Worker;

  bool adopt_finished();
  void require_intact(const std::filesystem::path& path, size_t number) const;
  void adopt();
  void take_over(const LabelsRecord& other);
  void write_fingerprint();
  void begin();
  void cut();
  void remove_parts() const;
  std::vector<Part> open_parts() const;
  int label(const std::vector<Part>& open);
  void start(const Part& part, std::vector<Worker>& workers) const;
  void take(const Part& part) const;
  void join();
  std::filesystem::path answer_of(const Part& part) const;
  std::filesystem::path log_path() const { return setup_.folder / "labelling.log"; }

  LabellingSetup setup_;
  FileLock lock_;
  LabelsRecord record_;
  Labels labels_;
};

}  // namespace stretto::distill
